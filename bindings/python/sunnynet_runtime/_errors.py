"""The one kind of error, and how a status of the C library becomes it."""

from __future__ import annotations

CODES = {
    "INVAL": -1, "NOMEM": -2, "IO": -3, "FORMAT": -4, "UNSUPPORTED": -5, "ABORTED": -6,
    "NUMERIC": -7, "MISMATCH": -8,
}
_NAMES = {status: code for code, status in CODES.items()}


class SunnyNetError(Exception):
    """Something failed; the text names the thing and the reason.

    code    what kind of failure: "INVAL" (an argument), "NOMEM", "IO", "FORMAT" (damaged bytes),
            "UNSUPPORTED", "ABORTED" (by a callback), "NUMERIC" (a NaN or an infinity) or
            "MISMATCH" (a saved state of another model)
    status  the same as the number of the C library, sn_status
    """

    code: str
    status: int

    def __init__(self, code: str, message: str) -> None:
        super().__init__(message)
        self.code = code
        self.status = CODES[code]

    def __reduce__(self) -> tuple[type, tuple[str, str]]:
        return type(self), (self.code, str(self))


def error_of(status: int, message: str) -> SunnyNetError:
    return SunnyNetError(_NAMES.get(status, "INVAL"), message)


def invalid(message: str) -> SunnyNetError:
    return SunnyNetError("INVAL", message)
