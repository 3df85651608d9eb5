#include "common/rpc/client_connections.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include <algorithm>
#include <iterator>
#include <vector>

#include "absl/strings/str_cat.h"

namespace shoal {
namespace {

// Of those that are silent, so many give way at once: with many, newcomers need not wait for the
// end of each; with few, one.
constexpr size_t kGiveWayShare = 16;

Time Now() { return std::chrono::steady_clock::now().time_since_epoch(); }

std::string Text(int family, const void* address, size_t scope, in_port_t port) {
  char text[INET6_ADDRSTRLEN] = "";
  inet_ntop(family, address, text, sizeof(text));
  if (family == AF_INET) return absl::StrCat(text, ":", ntohs(port));
  return absl::StrCat("[", text, scope == 0 ? "" : absl::StrCat("%", scope), "]:", ntohs(port));
}

}  // namespace

std::string PeerOf(int fd) {
  sockaddr_storage peer = {};
  socklen_t size = sizeof(peer);
  getpeername(fd, reinterpret_cast<sockaddr*>(&peer), &size);
  if (peer.ss_family == AF_INET) {
    const auto& ipv4 = reinterpret_cast<const sockaddr_in&>(peer);
    return Text(AF_INET, &ipv4.sin_addr, 0, ipv4.sin_port);
  }
  if (peer.ss_family != AF_INET6) return "";
  const auto& ipv6 = reinterpret_cast<const sockaddr_in6&>(peer);
  if (IN6_IS_ADDR_V4MAPPED(&ipv6.sin6_addr)) {
    return Text(AF_INET, &ipv6.sin6_addr.s6_addr[12], 0, ipv6.sin6_port);
  }
  return Text(AF_INET6, &ipv6.sin6_addr, ipv6.sin6_scope_id, ipv6.sin6_port);
}

ClientConnections::Room ClientConnections::MakeRoom() {
  MutexLock lock(&mutex_);
  if (connections_.size() < options_.most) return Room::kFree;
  std::erase_if(connections_, [](const auto& entry) { return !entry.second.socket.IsOpen(); });
  if (connections_.size() < options_.most) return Room::kFree;
  std::vector<const Connection*> silent;
  for (const auto& [peer, connection] : connections_) {
    if (!connection.local && connection.talking == 0) silent.push_back(&connection);
  }
  if (silent.empty()) return Room::kNone;
  const auto end = silent.begin() + (silent.size() + kGiveWayShare - 1) / kGiveWayShare;
  std::partial_sort(
      silent.begin(), end, silent.end(),
      [](const Connection* a, const Connection* b) { return a->silent_since < b->silent_since; });
  const Time now = Now();
  for (auto it = silent.begin(); it != end; ++it) {
    if (now - (*it)->silent_since >= options_.patience) (*it)->socket.ShutDown();
  }
  return Room::kSoon;
}

void ClientConnections::Add(int fd) {
  const std::string peer = PeerOf(fd);
  MutexLock lock(&mutex_);
  const Connection connection = {
      .socket = SocketMark(fd), .local = peer.empty(), .silent_since = Now()};
  // Two of one descriptor are not open at once.
  connections_.insert_or_assign(peer.empty() ? absl::StrCat("descriptor ", fd) : peer, connection);
}

ClientConnections::Connection* ClientConnections::Find(const std::string& peer) {
  const auto found = connections_.find(peer);
  return found == connections_.end() ? nullptr : &found->second;
}

bool ClientConnections::OpenStream(const std::string& peer) {
  MutexLock lock(&mutex_);
  Connection* const connection = Find(peer);
  return connection == nullptr || ++connection->streams <= options_.most_streams;
}

void ClientConnections::CloseStream(const std::string& peer) {
  MutexLock lock(&mutex_);
  Connection* const connection = Find(peer);
  if (connection != nullptr && connection->streams > 0) --connection->streams;
}

void ClientConnections::BeginTalk(const std::string& peer) {
  MutexLock lock(&mutex_);
  if (Connection* const connection = Find(peer)) ++connection->talking;
}

void ClientConnections::EndTalk(const std::string& peer) {
  MutexLock lock(&mutex_);
  Connection* const connection = Find(peer);
  if (connection == nullptr || connection->talking == 0) return;
  if (--connection->talking == 0) connection->silent_since = Now();
}

}  // namespace shoal
