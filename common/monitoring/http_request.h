#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace shoal {

// What a client asks for, by the first line of its request.
struct HttpRequest {
  std::string method;
  std::string path;  // without what follows a "?"
};

// Where the head of a request ends in `text`, behind the empty line; npos while that has not come.
size_t EndOfHead(std::string_view text);

// Reads "GET /path HTTP/1.1", the first line of `head`; nothing when it is not of that form. The
// fields that follow say nothing that matters here.
std::optional<HttpRequest> ParseHttpRequest(std::string_view head);

}  // namespace shoal
