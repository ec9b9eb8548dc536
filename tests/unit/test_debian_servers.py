"""Servers of Debian's archive: the manifest, and what an archive's list says."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from debian_servers import archive
from debian_servers.__main__ import MANIFEST
from debian_servers.archive import Archive, ArchiveError
from debian_servers.manifest import Manifest, Package, Server

_LIST = """\
Package: postgresql-99
Version: 99.1-2
Depends: postgresql-client-99, libbig1 (>= 2), libc6 | libmusl, perl:any,
 libfolded9
Description: a server
Filename: pool/main/p/postgresql-99.deb
SHA256: aa

Package: libbig1
Version: 1:2.0+b1
Pre-Depends: libsmall2
Filename: pool/main/b/libbig1.deb
SHA256: bb

Package: libsmall2
Version: 2
Filename: pool/main/s/libsmall2.deb
SHA256: cc
"""
_SERVER = Server(99, ("sid",), ("postgresql-99",), (Package("libsmall2", "1", "dd"),))


def _listed(tmp_path: Path) -> Archive:
    file = tmp_path / "Packages"
    file.write_text(_LIST)
    found = Archive(tmp_path, ("sid",))
    stanzas = archive._stanzas(file)
    found._lists = {"sid": {listed.package.name: listed for listed in stanzas}}
    return found


def test_the_manifest_is_whole_and_is_written_as_it_is_read(tmp_path: Path) -> None:
    manifest = Manifest.read(MANIFEST)
    assert [server.major for server in manifest.servers] == [19, 18, 17]
    for server in manifest.servers:
        names = [package.name for package in server.packages]
        assert set(server.roots) <= set(names)
        assert len(set(names)) == len(names)
        for package in server.packages:
            assert re.fullmatch(r"[0-9a-f]{64}", package.sha256), package
    manifest.write(tmp_path / "again.toml")
    assert (tmp_path / "again.toml").read_text() == MANIFEST.read_text()


def test_a_list_of_packages(tmp_path: Path) -> None:
    found = _listed(tmp_path)
    assert found._listed("libbig1", ["sid"]).package == Package("libbig1", "1:2.0+b1", "bb")
    assert found._listed("postgresql-99", ["sid"]).path == "pool/main/p/postgresql-99.deb"
    with pytest.raises(OSError, match="has no libz9 in sid"):
        found._listed("libz9", ["sid"])


def test_libraries_are_followed_whatever_else_is_asked_for(tmp_path: Path) -> None:
    libraries = _listed(tmp_path)._libraries_of(_SERVER)
    assert [listed.package.name for listed in libraries] == ["libbig1", "libsmall2"]


def test_a_version_that_is_gone_is_said(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    found = _listed(tmp_path)
    monkeypatch.setattr(found, "_get", lambda listed: listed.package)
    assert found.download(_SERVER) == [Package("libsmall2", "2", "cc")]
    assert "libsmall2 1 is no longer in Debian's archive: 2 is taken" in capsys.readouterr().err


def test_the_same_version_with_another_hash_is_refused(tmp_path: Path) -> None:
    server = Server(99, ("sid",), (), (Package("libsmall2", "2", "dd"),))
    with pytest.raises(OSError, match="has the hash cc in Debian's archive, expected dd"):
        _listed(tmp_path).download(server)


def test_what_was_unpacked_counts_for_its_own_manifest_alone(tmp_path: Path) -> None:
    assert not _SERVER.is_in(tmp_path)
    _SERVER.note_taken(tmp_path, [Package("libsmall2", "2", "cc")])
    assert _SERVER.is_in(tmp_path)
    assert not Server(99, ("sid",), (), (Package("libsmall2", "3", "dd"),)).is_in(tmp_path)
    (tmp_path / "taken.json").write_text("{")
    assert not _SERVER.is_in(tmp_path)


def test_a_machine_without_debian(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    shown = "http://archive.example/ubuntu/\n"
    monkeypatch.setattr(archive, "_run", lambda *_words: shown)
    monkeypatch.setattr(archive, "_KEYRING", MANIFEST)
    with pytest.raises(ArchiveError, match="knows no archive of Debian's"), Archive(tmp_path, ()):
        pass
