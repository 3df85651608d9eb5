#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace shoal {

// A request, from the first line of the client's message.
struct HttpRequest {
  std::string method;
  std::string path;  // without "?" and the text after it
};

// Returns the end of a request's head in `text`, after the empty line; npos if it is incomplete.
size_t EndOfHead(std::string_view text);

// Parses "GET /path HTTP/1.1", the first line of `head`; nothing if it has another form. Ignores
// the header fields.
std::optional<HttpRequest> ParseHttpRequest(std::string_view head);

}  // namespace shoal
