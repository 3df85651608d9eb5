#include <arpa/inet.h>

#include <algorithm>
#include <cctype>

#include "absl/strings/ascii.h"
#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "common/cluster/cluster_spec.h"

namespace shoal {
namespace {

constexpr size_t kMaxHostBytes = 253;  // RFC 1035
constexpr char kForm[] = "must be \"host:port\" or \"[ipv6]:port\"";

bool IsIpv6(const std::string& host) {
  in6_addr parsed;
  return inet_pton(AF_INET6, host.c_str(), &parsed) == 1;
}

absl::Status Wrong(const std::string& text, const std::string& what) {
  // Addresses come from the environment. Show only a readable part.
  const std::string shown = text.size() > 80 ? text.substr(0, 77) + "..." : text;
  return absl::InvalidArgumentError(absl::StrCat("is \"", absl::CHexEscape(shown), "\"; ", what));
}

// Splits at the colon before the port. Returns an error if there is none.
absl::Status Split(const std::string& text, std::string* host, std::string* port) {
  if (text.empty()) return Wrong(text, kForm);
  if (text.find("://") != std::string::npos) {
    return Wrong(text, absl::StrCat(kForm, ", without a scheme such as \"grpc://\""));
  }
  if (text.front() == '[') {
    const size_t end = text.find(']');
    if (end == std::string::npos) return Wrong(text, "lacks the closing \"]\" of an IPv6 address");
    *host = text.substr(1, end - 1);
    if (!IsIpv6(*host)) {
      return Wrong(text, absl::StrCat("has no IPv6 address in its brackets; ", kForm));
    }
    if (end + 1 == text.size())
      return Wrong(text, "has no port; append one, for example \":2222\"");
    if (text[end + 1] != ':') return Wrong(text, kForm);
    *port = text.substr(end + 2);
    return absl::OkStatus();
  }
  const size_t colon = text.find(':');
  if (colon == std::string::npos)
    return Wrong(text, "has no port; append one, for example \":2222\"");
  if (text.find(':', colon + 1) != std::string::npos) {
    return Wrong(text,
                 "has more than one colon; an IPv6 address stands in brackets: \"[::1]:2222\"");
  }
  *host = text.substr(0, colon);
  *port = text.substr(colon + 1);
  return absl::OkStatus();
}

absl::Status CheckHost(const std::string& text, const std::string& host) {
  if (host.empty()) return Wrong(text, absl::StrCat("has no host; ", kForm));
  if (host.size() > kMaxHostBytes) {
    return Wrong(text, absl::StrCat("has a host of ", host.size(), " characters; at most ",
                                    kMaxHostBytes, " can be resolved"));
  }
  for (const char c : host) {
    if (!std::isalnum(static_cast<unsigned char>(c)) && c != '-' && c != '.' && c != '_' &&
        c != ':') {
      return Wrong(
          text,
          absl::StrCat("has the character \"", absl::CHexEscape(std::string(1, c)),
                       "\" in its host; letters, digits, \"-\", \".\" and \"_\" may stand there"));
    }
  }
  return absl::OkStatus();
}

absl::StatusOr<int> ParsePort(const std::string& text, const std::string& port) {
  if (port.empty())
    return Wrong(text, "has no port after its colon; append one, for example \":2222\"");
  const bool digits =
      std::all_of(port.begin(), port.end(), [](unsigned char c) { return std::isdigit(c); });
  int value = 0;
  for (size_t i = 0; digits && i < port.size() && value <= 65535; ++i) {
    value = value * 10 + (port[i] - '0');
  }
  if (!digits || value < 1 || value > 65535) {
    return Wrong(text, "has a port that is not a number from 1 to 65535");
  }
  return value;
}

}  // namespace

absl::StatusOr<Address> Address::Parse(const std::string& text) {
  Address address;
  std::string port;
  if (absl::Status status = Split(text, &address.host, &port); !status.ok()) return status;
  if (absl::Status status = CheckHost(text, address.host); !status.ok()) return status;
  absl::StatusOr<int> number = ParsePort(text, port);
  if (!number.ok()) return number.status();
  address.port = *number;
  return address;
}

std::string Address::ToString() const {
  const bool ipv6 = host.find(':') != std::string::npos;
  return absl::StrCat(ipv6 ? "[" : "", host, ipv6 ? "]:" : ":", port);
}

bool Address::IsLoopback() const {
  in_addr ipv4;
  if (inet_pton(AF_INET, host.c_str(), &ipv4) == 1) return (ntohl(ipv4.s_addr) >> 24) == 127;
  in6_addr ipv6;
  if (inet_pton(AF_INET6, host.c_str(), &ipv6) == 1) return IN6_IS_ADDR_LOOPBACK(&ipv6);
  return absl::AsciiStrToLower(host) == "localhost";
}

}  // namespace shoal
