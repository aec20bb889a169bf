"""One wheel a platform: it holds the shared library, but no code for one Python only."""

import os

from setuptools import Distribution, setup
from setuptools.command.bdist_wheel import bdist_wheel


class WithLibrary(Distribution):
    def has_ext_modules(self) -> bool:
        return True  # the files go where those of a platform go


class PlatformWheel(bdist_wheel):
    def get_tag(self) -> "tuple[str, str, str]":
        platform = os.environ.get("SUNNYNET_WHEEL_PLATFORM") or super().get_tag()[2]
        return "py3", "none", platform


setup(distclass=WithLibrary, cmdclass={"bdist_wheel": PlatformWheel})
