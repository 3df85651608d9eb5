#include "common/monitoring/http_request.h"

#include <vector>

#include "absl/strings/str_split.h"

namespace shoal {

size_t EndOfHead(std::string_view text) {
  constexpr std::string_view kEmptyLine = "\r\n\r\n";
  const size_t found = text.find(kEmptyLine);
  return found == std::string_view::npos ? found : found + kEmptyLine.size();
}

std::optional<HttpRequest> ParseHttpRequest(std::string_view head) {
  const std::string line(head.substr(0, head.find("\r\n")));
  const std::vector<std::string> words = absl::StrSplit(line, ' ');
  if (words.size() != 3 || words[0].empty() || !words[1].starts_with('/') ||
      !words[2].starts_with("HTTP/1.")) {
    return std::nullopt;
  }
  return HttpRequest{words[0], words[1].substr(0, words[1].find('?'))};
}

}  // namespace shoal
