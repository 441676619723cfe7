"""What is named as a file may be anything: nothing of it blocks, and nothing fills memory."""

from __future__ import annotations

import os
import socket
import threading

import pytest

from tilec.regular_files import MIB, read_regular


def test_reads_a_file_up_to_its_limit(tmp_path):
    (tmp_path / "a").write_bytes(b"x" * MIB)
    assert read_regular(tmp_path / "a", MIB) == b"x" * MIB
    (tmp_path / "b").symlink_to("a")
    assert len(read_regular(str(tmp_path / "b"), MIB)) == MIB
    with pytest.raises(OSError, match="is larger than 1,048,576 bytes, which is the limit"):
        (tmp_path / "a").write_bytes(b"x" * (MIB + 1))
        read_regular(tmp_path / "a", MIB)


def test_a_hole_of_a_terabyte_is_not_read(tmp_path):
    (tmp_path / "a").touch()
    os.truncate(tmp_path / "a", 1 << 40)
    with pytest.raises(OSError, match="is larger than 67,108,864 bytes"):
        read_regular(tmp_path / "a", 64 * MIB)


def test_a_file_without_a_size_is_read_to_its_end():
    assert read_regular("/proc/self/status", MIB).startswith(b"Name:")
    with pytest.raises(OSError, match="is larger than 10 bytes"):
        read_regular("/proc/self/status", 10)


@pytest.mark.parametrize("path", ["/dev/zero", "/dev/tty", "/dev/full", "/dev/null"])
def test_a_device_is_refused(path):
    with pytest.raises(OSError, match="is a device, not a regular file"):
        read_regular(path, MIB)


def test_a_pipe_a_socket_a_folder_and_a_circle_are_refused(tmp_path):
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "link").symlink_to("pipe")
    (tmp_path / "circle").symlink_to("circle")
    with socket.socket(socket.AF_UNIX) as one:
        one.bind(os.path.relpath(tmp_path / "socket"))
    refused = {
        "pipe": "a named pipe", "link": "a named pipe", "socket": "a socket",
        ".": "is a directory", "circle": "symbolic links",
    }  # fmt: skip
    for name, said in refused.items():
        with pytest.raises(OSError, match=said):
            read_regular(tmp_path / name, MIB)


def test_a_pipe_of_the_shell_is_read_to_its_end_and_its_limit():
    for count, fits in ((MIB, True), (MIB + 1, False)):
        reads, writes = os.pipe()
        with os.fdopen(reads), os.fdopen(writes, "wb") as file:
            writer = threading.Thread(target=_write, args=(file, count), daemon=True)
            writer.start()
            path = f"/dev/fd/{reads}"
            if fits:
                assert len(read_regular(path, MIB)) == count
                continue
            with pytest.raises(OSError, match="is larger"):
                read_regular(path, MIB)


def _write(file, count):
    file.write(b"x" * count)
    file.close()
