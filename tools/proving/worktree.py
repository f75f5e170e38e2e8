# SPDX-License-Identifier: Apache-2.0
"""A repository's commits, and one of them checked out beside it in a folder that goes away again,
whatever happens. Nothing in here knows what a test is."""
import contextlib
import os
import shutil
import signal
import subprocess
import tempfile


class Undecided(Exception):
    """Nothing can be said: a tool, a commit or a build is missing."""


class Interrupted(BaseException):
    """A signal asked for the end."""


def environment():
    """Of every command: a hook's GIT_DIR is not ours."""
    return {name: value for name, value in os.environ.items() if not name.startswith("GIT_")}


def run(command, cwd, env=None):
    """Runs a command in a process group of its own, which does not outlive an interruption.
    Returns (exit code, output of both kinds)."""
    with subprocess.Popen(command, cwd=cwd, env=env or environment(), stdin=subprocess.DEVNULL,
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                          start_new_session=True) as process:
        try:
            output = process.communicate()[0]
        except BaseException:
            # Asked first: ninja ends its compilers, which are in groups of their own.
            for kind in (signal.SIGTERM, signal.SIGKILL):
                with contextlib.suppress(ProcessLookupError, subprocess.TimeoutExpired):
                    os.killpg(process.pid, kind)
                    process.wait(5)
            raise
    return process.returncode, output.decode("utf-8", "replace")


@contextlib.contextmanager
def signals_interrupt():
    """SIGINT, SIGTERM and SIGHUP become Interrupted, once; a second one does not stop the tidying."""
    kinds = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)

    def interrupt(number, frame):
        for kind in kinds:
            signal.signal(kind, signal.SIG_IGN)
        raise Interrupted(number)

    before = {kind: signal.signal(kind, interrupt) for kind in kinds}
    try:
        yield
    finally:
        for kind, handler in before.items():
            signal.signal(kind, handler)


class Repository:
    def __init__(self, root):
        self.root = root

    def git(self, *arguments, check=True, cwd=None, given=b""):
        done = subprocess.run(["git", "-c", "core.hooksPath=" + os.devnull, *arguments],
                              cwd=cwd or self.root, env=environment(), input=given,
                              stdout=subprocess.PIPE, stderr=subprocess.PIPE, check=False)
        if check and done.returncode != 0:
            raise Undecided(f"git {' '.join(arguments)}: "
                            f"{done.stderr.decode('utf-8', 'replace').strip()}")
        return done.returncode, done.stdout

    def commit(self, name):
        """The commit a name stands for, or None."""
        code, output = self.git("rev-parse", "--verify", "--quiet", "--end-of-options",
                                name + "^{commit}", check=False)
        return output.decode().strip() if code == 0 else None

    def ancestor(self, a, b):
        """A commit that both come from, or None."""
        code, output = self.git("merge-base", a, b, check=False)
        return output.decode().strip() if code == 0 else None

    def describe(self, commit):
        return self.git("log", "-1", "--format=%h \"%s\"", commit)[1].decode(
            "utf-8", "replace").strip()

    def uncommitted(self):
        """How many files differ from HEAD, those git does not know included."""
        return len(self.git("status", "--porcelain")[1].splitlines())

    def changes(self, base, head):
        """[(A, M, D or T, path)]; a file that moved went and came."""
        output = self.git("diff", "--name-status", "--no-renames", "-z", base, head)[1]
        parts = output.decode("utf-8", "surrogateescape").split("\0")[:-1]
        return list(zip(parts[0::2], parts[1::2]))

    def text(self, commit, path):
        """A file's text in a commit; None where it is not."""
        code, output = self.git("show", f"{commit}:{path}", check=False)
        return output.decode("utf-8", "replace") if code == 0 else None

    @contextlib.contextmanager
    def worktree(self, commit):
        """A folder with `source`, the commit, and room beside it."""
        folder = os.path.realpath(tempfile.mkdtemp(prefix="prove-red-"))
        tree = Worktree(self, os.path.join(folder, "source"))
        try:
            self.git("worktree", "add", "--detach", tree.path, commit)
            yield tree
        finally:
            # Twice: one that git was interrupted at is locked.
            removed = self.git("worktree", "remove", "--force", "--force", tree.path, check=False)
            shutil.rmtree(folder, ignore_errors=True)
            if removed[0] != 0:
                self.git("worktree", "prune", check=False)


class Worktree:
    def __init__(self, repository, path):
        self.repository = repository
        self.path = path

    def check_out(self, commit):
        self.repository.git("checkout", "--quiet", "--force", "--detach", commit, cwd=self.path)

    def lay(self, commit, paths):
        """Puts these files of another commit over the one that is there."""
        if paths:
            names = "".join(path + "\0" for path in paths).encode("utf-8", "surrogateescape")
            self.repository.git("--literal-pathspecs", "checkout", "--quiet", commit,
                                "--pathspec-from-file=-", "--pathspec-file-nul", cwd=self.path,
                                given=names)

    def write(self, path, text):
        full = os.path.join(self.path, path)
        os.makedirs(os.path.dirname(full), exist_ok=True)
        with open(full, "w", encoding="utf-8") as file:
            file.write(text)

    def read(self, path):
        """A file's text, or nothing where it is none."""
        try:
            with open(os.path.join(self.path, path), encoding="utf-8", errors="replace") as file:
                return file.read()
        except OSError:
            return ""
