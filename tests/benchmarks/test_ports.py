"""Ports that nobody takes before the server does."""

import socket

from benchmarks import ports


def test_a_port_that_is_taken_is_passed_over(monkeypatch):
    monkeypatch.setattr(ports, "_ports", {})
    first = ports.free_port()
    assert ports.FIRST <= first < 32_768
    with socket.create_server(("127.0.0.1", first)):
        monkeypatch.setattr(ports, "_ports", {})
        assert ports.free_port() != first


def test_processes_look_at_different_ports(monkeypatch):
    found = []
    for number in (4000, 4001):
        monkeypatch.setattr(ports.os, "getpid", lambda number=number: number)
        found.append(ports.free_port())
    assert found[1] // ports.BLOCK != found[0] // ports.BLOCK
