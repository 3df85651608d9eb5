#pragma once

#include <cstdint>
#include <string>

namespace shoal {

// The beginning of the message about a failed TLS handshake.
inline constexpr char kFailedHandshakeLine[] = "rejected a handshake: ";

// Sends the log messages of gRPC and protobuf to `log`, for the whole process. Otherwise they write
// to stderr and may block there. Calls `log` on any thread. A failed TLS handshake is logged in
// words, the same reason once a minute.
void SendLibraryLogTo(void (*log)(const std::string& message));

// Returns the number of TLS handshakes that gRPC has logged as failed, of clients and servers of
// this process: no certificate, a wrong signature, another version than TLS 1.3, no TLS at all. 0
// before SendLibraryLogTo(). Any thread.
uint64_t FailedHandshakes();

}  // namespace shoal
