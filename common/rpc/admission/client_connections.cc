#include "common/rpc/admission/client_connections.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include <algorithm>

#include "absl/strings/str_cat.h"

namespace shoal {
namespace {

// One of this many silent connections gives way at once, but at least one. With many of them, new
// connections do not wait for the end of each.
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
  const auto is_free = [this] {
    MutexLock lock(&mutex_);
    return connections_.size() < options_.max_connections;
  };
  if (is_free()) return Room::kFree;
  std::vector<Silent> silent = Sweep();
  if (is_free()) return Room::kFree;
  if (silent.empty()) return Room::kNone;
  const auto end = silent.begin() + (silent.size() + kGiveWayShare - 1) / kGiveWayShare;
  std::partial_sort(silent.begin(), end, silent.end(),
                    [](const Silent& a, const Silent& b) { return a.since < b.since; });
  const Time now = Now();
  if (now - silent.front().since < options_.patience) return Room::kLater;
  for (auto it = silent.begin(); it != end; ++it) {
    if (now - it->since >= options_.patience) End(*it);
  }
  return Room::kSoon;
}

void ClientConnections::End(const Silent& silent) {
  MutexLock lock(&mutex_);
  const auto connection = connections_.find(silent.number);
  if (connection != connections_.end() && connection->second.talking == 0) silent.socket.ShutDown();
}

// Makes its system calls without the lock. Otherwise the event loop would wait for them.
std::vector<ClientConnections::Silent> ClientConnections::Sweep() {
  struct Seen {
    Silent silent;
    bool is_silent;
  };
  std::vector<Seen> all;
  {
    MutexLock lock(&mutex_);
    all.reserve(connections_.size());
    for (const auto& [number, connection] : connections_) {
      all.push_back({{number, connection.socket, connection.silent_since},
                     !connection.peer.empty() && connection.talking == 0});
    }
  }
  std::vector<uint64_t> closed;
  std::vector<Silent> silent;
  for (const Seen& each : all) {
    if (!each.silent.socket.IsOpen()) {
      closed.push_back(each.silent.number);
    } else if (each.is_silent) {
      silent.push_back(each.silent);
    }
  }
  MutexLock lock(&mutex_);
  for (const uint64_t number : closed) {
    const auto connection = connections_.find(number);
    if (connection == connections_.end()) continue;
    const auto last = last_of_peer_.find(connection->second.peer);
    if (last != last_of_peer_.end() && last->second == number) last_of_peer_.erase(last);
    connections_.erase(connection);
  }
  return silent;
}

void ClientConnections::Add(int fd) {
  const std::string peer = PeerOf(fd);
  MutexLock lock(&mutex_);
  const uint64_t number = ++last_number_;
  connections_.emplace(number,
                       Connection{.socket = SocketMark(fd), .peer = peer, .silent_since = Now()});
  if (!peer.empty()) last_of_peer_.insert_or_assign(peer, number);
}

uint64_t ClientConnections::Find(const std::string& peer) const {
  MutexLock lock(&mutex_);
  const auto found = last_of_peer_.find(peer);
  return found == last_of_peer_.end() ? 0 : found->second;
}

int ClientConnections::Descriptor(uint64_t connection) const {
  MutexLock lock(&mutex_);
  const auto found = connections_.find(connection);
  return found == connections_.end() ? -1 : found->second.socket.fd();
}

bool ClientConnections::OpenStream(uint64_t connection) {
  MutexLock lock(&mutex_);
  const auto found = connections_.find(connection);
  return found == connections_.end() || ++found->second.streams <= options_.max_streams;
}

void ClientConnections::CloseStream(uint64_t connection) {
  MutexLock lock(&mutex_);
  const auto found = connections_.find(connection);
  if (found != connections_.end()) --found->second.streams;
}

void ClientConnections::BeginTalk(uint64_t connection) {
  MutexLock lock(&mutex_);
  const auto found = connections_.find(connection);
  if (found != connections_.end()) ++found->second.talking;
}

void ClientConnections::EndTalk(uint64_t connection) {
  MutexLock lock(&mutex_);
  const auto found = connections_.find(connection);
  if (found == connections_.end()) return;
  if (--found->second.talking == 0) found->second.silent_since = Now();
}

}  // namespace shoal
