"""The version of the package, which is that of the library it is for."""

VERSION = "0.1.0"
