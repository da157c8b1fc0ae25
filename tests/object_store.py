"""An S3-compatible server in this process (moto's), one for all tests."""

from __future__ import annotations

import logging
import secrets
from collections.abc import Iterator
from pathlib import Path

import pytest

SECRET = "wJalrXUtnFEMI"


@pytest.fixture(scope="session")
def s3_server() -> Iterator[str]:
    server_module = pytest.importorskip("moto.server")
    logging.getLogger("werkzeug").setLevel(logging.ERROR)
    server = server_module.ThreadedMotoServer(ip_address="127.0.0.1", port=0, verbose=False)
    server.start()
    host, port = server.get_host_and_port()
    yield f"http://{host}:{port}"
    server.stop()


@pytest.fixture
def s3(s3_server: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """The address of an empty bucket, which is found as it is by everybody: by the environment."""
    s3fs = pytest.importorskip("s3fs")
    nothing = str(tmp_path / "no such file")
    told = {
        "AWS_ENDPOINT_URL": s3_server,
        "AWS_ACCESS_KEY_ID": "somebody",
        "AWS_SECRET_ACCESS_KEY": SECRET,
        "AWS_DEFAULT_REGION": "us-east-1",
        "AWS_MAX_ATTEMPTS": "1",
        "AWS_EC2_METADATA_DISABLED": "true",
        "AWS_CONFIG_FILE": nothing,
        "AWS_SHARED_CREDENTIALS_FILE": nothing,
        "XDG_CACHE_HOME": str(tmp_path / "cache"),
    }
    for name, value in told.items():
        monkeypatch.setenv(name, value)
    bucket = f"bucket-{secrets.token_hex(6)}"
    # (clients are kept from test to test, with the environment that they were made in)
    s3fs.S3FileSystem(max_concurrency=1).mkdir(bucket)
    return f"s3://{bucket}"


@pytest.fixture
def memory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """The address of an empty folder in memory."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    return f"memory://tests/{secrets.token_hex(6)}"
