"""A TCP proxy on 127.0.0.1 to a broker, which can be cut as a network is."""

from __future__ import annotations

import contextlib
import socket
import threading


class Proxy:
    """Forwards connections to `to`, a port of 127.0.0.1, from when it is made until `cut` or `close`."""

    def __init__(self, to: int) -> None:
        self.to = to
        self.listening = socket.create_server(("127.0.0.1", 0))
        self.port = int(self.listening.getsockname()[1])
        self.open: list[socket.socket] = []
        self.is_cut = False
        threading.Thread(target=self._accept, daemon=True).start()

    def _accept(self) -> None:
        while True:
            try:
                near, _ = self.listening.accept()
                far = socket.create_connection(("127.0.0.1", self.to))
            except OSError:
                if self.listening.fileno() < 0:
                    return
                near.close()  # the broker is not up yet
                continue
            self.open += [near, far]
            if self.is_cut:
                self.cut()
            for source, sink in ((near, far), (far, near)):
                threading.Thread(target=self._forward, args=(source, sink), daemon=True).start()

    def _forward(self, source: socket.socket, sink: socket.socket) -> None:
        with contextlib.suppress(OSError):
            while data := source.recv(65536):
                sink.sendall(data)
        for each in (source, sink):
            with contextlib.suppress(OSError):
                each.shutdown(socket.SHUT_RDWR)
            each.close()

    def cut(self) -> None:
        """Close all connections, and every new one at once."""
        self.is_cut = True
        for each in self.open:
            with contextlib.suppress(OSError):
                each.shutdown(socket.SHUT_RDWR)

    def close(self) -> None:
        self.cut()
        self.listening.close()
