#pragma once

#include <optional>

#include "common/step_plan/round.h"

namespace shoal {

// Returns the round of a lease or a push; nothing if the message has none. For each message with a
// proto::Round called `round`.
template <typename Message>
std::optional<Round> RoundOf(const Message& message) {
  if (!message.has_round()) return std::nullopt;
  return Round{.first = message.round().first(),
               .count = message.round().count(),
               .number = message.round().number()};
}

template <typename Message>
void SetRound(const Round& round, Message* message) {
  auto* const proto = message->mutable_round();
  proto->set_first(round.first);
  proto->set_count(round.count);
  proto->set_number(round.number);
}

}  // namespace shoal
