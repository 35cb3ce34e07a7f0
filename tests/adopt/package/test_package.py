#!/usr/bin/env python3
"""The CMake package: installed whole and in parts, shared and static, and as a folder.

    test_package.py BUILD
"""

import pathlib
import subprocess
import sys
import tempfile

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parents[2]


def run(*words, succeeds=True):
    print("+", *words, flush=True)
    done = subprocess.run(list(map(str, words)), text=True, capture_output=True, check=False)
    if (done.returncode == 0) != succeeds:
        print(done.stdout, done.stderr, sep="\n")
        sys.exit(1)
    return done.stdout + done.stderr


class Workshop:
    """Install prefixes and builds below one folder that goes away."""

    def __init__(self, build, folder):
        self.build, self.folder = build, pathlib.Path(folder)

    def install(self, *components):
        prefix = self.folder / "-".join(("prefix", *components))
        for component in components:
            run("cmake", "--install", self.build, "--prefix", prefix, "--component", component)
        return prefix

    def use(self, prefix, name, *options, parts="", succeeds=True):
        """The configured project, or what CMake says instead."""
        target = self.folder / name
        said = run("cmake", "-S", HERE / "user", "-B", target, "-G", "Ninja",
                   f"-DCMAKE_PREFIX_PATH={prefix}", f"-DPARTS={parts}", *options,
                   succeeds=succeeds)
        return target if succeeds else said

    def judges(self, target, shared):
        run("cmake", "--build", target)
        assert "PASS" in run(target / "use"), "the judge says PASS"
        linked = run("ldd", target / "use")
        assert ("libringproof.so" in linked) == shared, linked


def main(build):
    with tempfile.TemporaryDirectory() as folder:
        shop = Workshop(build, folder)
        # The reference alone is headers: it needs nothing built, and the rest is missing by name.
        reference = shop.install("reference")
        run("cmake", "--build", shop.use(reference, "headers", parts="reference"))
        said = shop.use(reference, "missing", parts="oracle", succeeds=False)
        assert "without its component" in said and "--component oracle" in said, said
        assert not (reference / "bin").exists() and not list(reference.glob("lib*/*.so"))

        run("cmake", "--build", build, "--target", "ringproof_c", "ringproof_c_static")
        both = shop.install("oracle", "static")
        shop.judges(shop.use(both, "shared", parts="oracle"), shared=True)
        shop.judges(shop.use(both, "static", "-DBUILD_SHARED_LIBS=OFF", parts="oracle"),
                    shared=False)
        # As a folder: configured only, for it would be built again as a whole.
        for switch in ("ON", "OFF"):
            shop.use(folder, f"folder-{switch}", f"-DRINGPROOF_FOLDER={ROOT}",
                     f"-DBUILD_SHARED_LIBS={switch}")
    print("the package: components, shared, static, as a folder: all well")


if __name__ == "__main__":
    main(sys.argv[1])
