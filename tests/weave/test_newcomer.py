"""The newcomer's run notices what would stop a newcomer; where all is well it passes."""

import pathlib
import stat
import sys
import tempfile
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).parent))
import newcomer  # noqa: E402

# A stand-in for ./run: the answer passes its check if it is the solution.
RUN = """#!/bin/sh
[ "$1" = tutorial ] && echo text && exit 0
[ "$1" = exercise ] || exit 2
answer=$RINGPROOF_ANSWERS/answer-$2.cpp
[ -e "$answer" ] || echo stub >"$answer"
grep -q right "$answer" && echo "all checks pass" && exit 0
echo "1 of 1 checks fail"
exit 1
"""
PAGE = "# A chapter\n\n```sh\n./run tutorial 01   # its program\nbuild/bin/tool --long \\\n" \
       "  option\n./run exercise 01\n```\n"
FRONT = "# Front\n\n```sh\n./run demo   # it\n./run test\n```\n"
TOOL = '#!/bin/sh\ntest "$*" = "--long option" && echo done\n'


class Newcomer(unittest.TestCase):
    def setUp(self):
        scratch = tempfile.TemporaryDirectory()
        self.addCleanup(scratch.cleanup)
        folder = pathlib.Path(scratch.name)
        self.root, self.build, self.clone = folder / "root", folder / "other", folder / "clone"
        self.clone.mkdir()
        for path, text in {"root/run": RUN, "root/tutorials/README.md": "# All\n",
                           "root/README.md": FRONT,
                           "other/bin/ringproof-demo": "#!/bin/sh\necho demo\n",
                           "root/tutorials/01_row/README.md": PAGE, "other/bin/tool": TOOL,
                           "root/tutorials/01_row/exercise/solution.cpp": "right\n"}.items():
            (folder / path).parent.mkdir(parents=True, exist_ok=True)
            (folder / path).write_text(text, encoding="utf-8")
        for program in (self.root / "run", self.build / "bin/tool",
                        self.build / "bin/ringproof-demo"):
            program.chmod(stat.S_IRWXU)

    def work(self):
        clone = newcomer.Clone(self.root, self.build, self.clone)
        for page in newcomer.pages(self.root, []):
            for command in newcomer.commands(page):
                clone.work_through(command)

    def expect(self, path, old, new, words):
        """One edit stops the newcomer, with these words."""
        text = path.read_text(encoding="utf-8")
        self.assertEqual(text.count(old), 1)
        path.write_text(text.replace(old, new), encoding="utf-8")
        with self.assertRaises(newcomer.Wrong) as caught:
            self.work()
        self.assertIn(words, str(caught.exception))

    def test_commands_that_work(self):
        self.work()
        self.assertFalse(list((self.root / "tutorials").rglob("answer-*")))

    def test_a_command_of_the_front_page_that_does_not_work(self):
        self.expect(self.root / "README.md", "./run test", "./run demo2",
                    "`./run demo2` exited 2")

    def test_a_demo_that_fails(self):
        self.expect(self.build / "bin/ringproof-demo", "echo demo", "exit 1", "exited 1")

    def test_a_misspelt_command(self):
        self.expect(self.root / "tutorials/01_row/README.md", "run tutorial", "run tutorials",
                    "`./run tutorials 01` exited 2")

    def test_a_program_that_is_not_there(self):
        self.expect(self.root / "tutorials/01_row/README.md", "bin/tool", "bin/tools", "exited 127")

    def test_a_program_that_prints_nothing(self):
        self.expect(self.build / "bin/tool", "&& echo done", "", "exited 0")

    def test_an_exercise_that_passes_with_its_gaps(self):
        self.expect(self.root / "run", "echo stub", "echo right", "not (1,)")

    def test_a_solution_that_does_not_pass(self):
        self.expect(self.root / "tutorials/01_row/exercise/solution.cpp", "right", "wrong",
                    "not (0,)")


if __name__ == "__main__":
    unittest.main()
