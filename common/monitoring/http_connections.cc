#include "common/monitoring/http_connections.h"

#include <sys/socket.h>

#include <algorithm>
#include <map>
#include <utility>

namespace shoal {

void HttpConnections::MakeRoom(const std::string& address) {
  std::map<std::string, size_t> counts;
  size_t open = 0;
  for (const HttpConnection& each : all_) {
    if (each.cut_off) continue;
    ++counts[each.address];
    ++open;
  }
  std::string crowd = address;
  if (counts[address] < kMaxOfAddress) {
    if (open < kMax) return;
    crowd = std::max_element(counts.begin(), counts.end(), [](const auto& a, const auto& b) {
              return a.second < b.second;
            })->first;
  }
  using State = HttpConnection::State;
  for (const State state : {State::kReading, State::kAnswering, State::kPending}) {
    for (HttpConnection& each : all_) {
      if (each.cut_off || each.state != state || each.address != crowd) continue;
      return CutOff(&each);
    }
  }
}

HttpConnection* HttpConnections::Add(HttpConnection connection, Clock::time_point now) {
  all_.push_back(std::move(connection));
  all_.back().deadline = now + patience_;
  return &all_.back();
}

void HttpConnections::Remove(HttpConnection* connection) {
  all_.remove_if([connection](const HttpConnection& each) { return &each == connection; });
}

void HttpConnections::BeginAnswer(HttpConnection* connection, Clock::time_point now) {
  connection->state = HttpConnection::State::kAnswering;
  connection->deadline = now + answer_patience_;
}

std::optional<HttpConnections::Clock::time_point> HttpConnections::CutOffLate(
    Clock::time_point now) {
  std::optional<Clock::time_point> next;
  for (HttpConnection& each : all_) {
    if (each.state == HttpConnection::State::kPending || each.cut_off) continue;
    if (each.deadline <= now) {
      CutOff(&each);
    } else if (!next || each.deadline < *next) {
      next = each.deadline;
    }
  }
  return next;
}

void HttpConnections::CutOff(HttpConnection* connection) {
  connection->cut_off = true;
  shutdown(connection->fd, SHUT_RDWR);
}

}  // namespace shoal
