"""Which files belong to the project: those that git knows or would add; without git, all."""

import os
import subprocess


def files(root):
    """Paths relative to `root`, sorted."""
    try:
        listed = subprocess.run(["git", "ls-files", "-co", "--exclude-standard", "-z"], cwd=root,
                                capture_output=True, text=True, check=True).stdout.split("\0")
    except (OSError, subprocess.CalledProcessError):  # an unpacked archive
        listed = []
        for folder, folders, names in os.walk(root):
            folders[:] = [f for f in folders if not f.startswith(("build", ".git", "__pycache__"))]
            listed += [os.path.relpath(os.path.join(folder, name), root) for name in names]
    return sorted(path for path in set(listed) if path and (root / path).is_file())
