#pragma once

#include <arpa/inet.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <chrono>
#include <cstdlib>
#include <string>

namespace shoal {

// An HTTP client on 127.0.0.1 that can be slow, silent or wrong, unlike that of a library.
class HttpClient {
 public:
  // Connects to the port at the end of `address`. 0 bytes means a buffer of the default size. The
  // client's own address is `from`, which may be any of 127.0.0.0/8.
  explicit HttpClient(const std::string& address, int receive_buffer_bytes = 0,
                      const char* from = "127.0.0.1")
      : socket_(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
    if (receive_buffer_bytes > 0) {
      setsockopt(socket_, SOL_SOCKET, SO_RCVBUF, &receive_buffer_bytes,
                 sizeof(receive_buffer_bytes));
    }
    sockaddr_in own = {};
    own.sin_family = AF_INET;
    inet_pton(AF_INET, from, &own.sin_addr);
    bind(socket_, reinterpret_cast<sockaddr*>(&own), sizeof(own));
    sockaddr_in to = {};
    to.sin_family = AF_INET;
    to.sin_port = htons(static_cast<uint16_t>(std::atoi(&address[address.rfind(':') + 1])));
    to.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    connected_ = connect(socket_, reinterpret_cast<sockaddr*>(&to), sizeof(to)) == 0;
  }
  ~HttpClient() { close(socket_); }
  HttpClient(const HttpClient&) = delete;
  HttpClient& operator=(const HttpClient&) = delete;

  bool connected() const { return connected_; }
  int fd() const { return socket_; }

  // Returns false if the server has closed the connection.
  bool Send(const std::string& text) {
    return send(socket_, text.data(), text.size(), MSG_NOSIGNAL) ==
           static_cast<ssize_t>(text.size());
  }
  // Waits up to `patience`. Returns whether the server has closed the connection.
  bool ClosedWithin(std::chrono::milliseconds patience) {
    pollfd readable = {socket_, POLLIN, 0};
    char byte;
    return poll(&readable, 1, static_cast<int>(patience.count())) == 1 &&
           recv(socket_, &byte, 1, MSG_DONTWAIT | MSG_PEEK) <= 0;
  }
  // Returns all data until the server closes the connection; empty after a minute without data.
  std::string Receive() {
    std::string text;
    char buffer[4096];
    for (;;) {
      pollfd readable = {socket_, POLLIN, 0};
      if (poll(&readable, 1, 60000) != 1) return "";
      const ssize_t count = recv(socket_, buffer, sizeof(buffer), 0);
      if (count <= 0) return text;
      text.append(buffer, count);
    }
  }

 private:
  const int socket_;
  bool connected_ = false;
};

// Returns the whole answer, with headers, to a request with this first line and these header
// fields, each with its "\r\n".
inline std::string Request(const std::string& address, const std::string& line,
                           const std::string& fields = "") {
  HttpClient client(address);
  client.Send(line + " HTTP/1.1\r\nHost: localhost\r\n" + fields + "\r\n");
  return client.Receive();
}

}  // namespace shoal
