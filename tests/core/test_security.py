"""What SECURITY.md promises of checkpoints: nothing in one is ever executed."""

import io
import os
import pickle
from hashlib import sha256

import pytest
import torch

from bilevel_core import FMBO, checkpoint, run
from bilevel_core.checkpoint import rows_of
from core.test_runner import quadratic


class Command:
    """Unpickled by anybody who trusts it, it makes a folder."""

    def __init__(self, folder):
        self.folder = str(folder)

    def __reduce__(self):
        return os.mkdir, (self.folder,)


def forged(path, content):
    """A checkpoint with this content, and every checksum right."""
    path.write_bytes(checkpoint.FORMAT + sha256(content).digest() + content)
    rows_of(path).write_bytes(b"")


def as_torch(command):
    buffer = io.BytesIO()
    torch.save({"identity": {}, "size": 0, "rows": sha256().hexdigest(), "leaves": command}, buffer)
    return buffer.getvalue()


@pytest.mark.parametrize("written", [as_torch, pickle.dumps], ids=["torch", "pickle"])
def test_a_forged_checkpoint_runs_no_command(written, tmp_path):
    path, made = tmp_path / "run.ckpt", tmp_path / "made"
    content = written(Command(made))
    forged(path, content)
    with pytest.raises(ValueError, match=r"(?s)run\.ckpt is no checkpoint of this run .*; move it away"):
        run(quadratic(), FMBO(), steps=3, progress=False, checkpoint=path)
    assert not made.exists()
    if written is as_torch:  # the command is real: a reader who trusts the file runs it
        torch.load(io.BytesIO(content), weights_only=False)
        assert made.is_dir()
