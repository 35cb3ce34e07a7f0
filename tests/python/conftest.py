"""What the tests of the package share."""

pytest_plugins = ["pytester"]
