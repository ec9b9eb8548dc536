"""Locked folders: how a live run's folder is told from a dead one's."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

from pgheadroom.servers.locked_folder import LockedFolder, abandoned_folders, sweep_unfinished
from pgheadroom.servers.watchdog import remove_run_folder


def test_a_held_folder_is_not_abandoned(tmp_path: Path) -> None:
    """Only when the last holder lets go, here a child that inherited the lock, is it abandoned."""
    folder = LockedFolder.create(tmp_path)
    assert folder.path.parent == tmp_path
    assert folder.path.name.startswith("pgheadroom-")
    assert list(abandoned_folders(tmp_path)) == []
    child = subprocess.Popen(
        [sys.executable, "-c", "input()"], stdin=subprocess.PIPE, pass_fds=(folder.lock_fd,)
    )
    folder.unlock()
    assert list(abandoned_folders(tmp_path)) == []
    child.communicate(b"\n")
    (found,) = abandoned_folders(tmp_path)
    assert found.path == folder.path
    assert list(abandoned_folders(tmp_path)) == []  # now we hold it
    found.unlock()


def test_the_name_appears_with_content_and_lock(tmp_path: Path) -> None:
    """Others never see a folder without what `fill` puts in; if that fails, nothing is left."""
    seen: list[list[str]] = []

    def fill(hidden: Path) -> None:
        seen.append([path.name for path in tmp_path.glob("pgheadroom-*")])
        (hidden / "owner.json").touch()

    with LockedFolder.create(tmp_path, fill=fill) as folder:
        assert {path.name for path in folder.path.iterdir()} == {"lock", "owner.json"}
    assert seen == [[]]

    def fail(_hidden: Path) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        LockedFolder.create(tmp_path, fill=fail)
    assert list(tmp_path.iterdir()) == []


def test_unfinished_folders_go_when_their_makers_are_dead(tmp_path: Path) -> None:
    """Not while they are locked, and not while they may be about to be locked."""
    dead = LockedFolder.create(tmp_path, unfinished=True)
    live = LockedFolder.create(tmp_path, unfinished=True)
    dead.unlock()
    sweep_unfinished(tmp_path)
    assert dead.path.exists()  # too young to be sure
    for folder in (dead, live):
        os.utime(folder.path, (time.time() - 3600,) * 2)
    sweep_unfinished(tmp_path)
    assert not dead.path.exists()
    assert live.path.exists()
    live.unlock()


def test_removal_that_was_interrupted_goes_on(tmp_path: Path) -> None:
    """The lock file goes last; so either the lock is there, or the folder is empty."""
    folder = LockedFolder.create(tmp_path, fill=lambda hidden: (hidden / "owner.json").touch())
    folder.unlock()
    (folder.path / "owner.json").unlink()
    (found,) = abandoned_folders(tmp_path)
    found.unlock()
    (folder.path / "lock").unlink()
    assert list(abandoned_folders(tmp_path)) == []
    assert list(tmp_path.iterdir()) == []


def test_removing_a_run_folder_does_not_follow_links(tmp_path: Path) -> None:
    """What a link in it points to belongs to somebody else."""
    precious = tmp_path / "precious"
    precious.mkdir()
    (precious / "file").touch()
    run = tmp_path / "run"
    (run / "clusters" / "main").mkdir(parents=True)
    (run / "clusters" / "main" / "link").symlink_to(precious)
    (run / "link").symlink_to(precious)
    (run / "lock").touch()
    assert remove_run_folder(run) == []
    assert not run.exists()
    assert (precious / "file").exists()
    assert remove_run_folder(run) == []
