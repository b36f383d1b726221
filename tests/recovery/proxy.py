"""A proxy before an API server whose watches of Jobs fall silent: proxy.py PORT DIRECTORY

Prints its own port, on loopback and without TLS. Once DIRECTORY/silence exists, the watches of Jobs that are open bring nothing
more, and do not end. Every other request and every later watch passes.
"""

import http.client
import http.server
import os
import socketserver
import ssl
import sys
import time

API_PORT, DIRECTORY = int(sys.argv[1]), sys.argv[2]


class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def forward(self):
        body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        context = ssl._create_unverified_context()
        upstream = http.client.HTTPSConnection("127.0.0.1", API_PORT, context=context)
        upstream.request(self.command, self.path, body, dict(self.headers))
        answer = upstream.getresponse()
        is_watch = "watch=1" in self.path or "watch=true" in self.path
        was_silent = self.is_silent()
        self.send_response(answer.status)
        for name, value in answer.getheaders():
            if name.lower() not in ("transfer-encoding", "connection", "content-length"):
                self.send_header(name, value)
        self.send_header("Connection", "close")
        self.end_headers()
        while piece := answer.read1(65536):
            while is_watch and "/jobs?" in self.path and self.is_silent() and not was_silent:
                time.sleep(1)
            self.wfile.write(piece)
            self.wfile.flush()
        self.close_connection = True

    def is_silent(self):
        return os.path.exists(os.path.join(DIRECTORY, "silence"))

    def log_message(self, *_):
        pass

    do_GET = do_POST = do_PUT = do_PATCH = do_DELETE = forward


class Server(socketserver.ThreadingMixIn, http.server.HTTPServer):
    daemon_threads = True


server = Server(("127.0.0.1", 0), Handler)
print(server.server_address[1], flush=True)
server.serve_forever()
