#pragma once

#include <cstdint>
#include <optional>
#include <utility>

#include "common/files/file_system.h"
#include "common/rpc/event_loop.h"
#include "ps/cuts/cuts.h"
#include "ps/loading/variable_loading.h"
#include "ps/services/push_plan.h"
#include "ps/streams/server_stats.h"

namespace shoal {

namespace proto {
class ServerHello;
}  // namespace proto

// The timeline that a Load has opened.
struct Timeline {
  Timeline(uint64_t opened_by, LoadedVariables loaded, int ps_index, EventLoop* loop,
           FileSystem* files)
      : term(opened_by),
        variables(std::move(loaded)),
        cuts(ps_index, loop, files, variables.store.get()) {}

  uint64_t term;
  LoadedVariables variables;
  Cuts cuts;
  std::optional<PushPlan> plan;  // none: the number of examples is not known yet
};

// The state of a ps that its two services share. ControlService changes term and timeline;
// ExchangeService reads them, and changes the variables. Loop thread only.
struct PsState {
  const int index;
  const uint64_t incarnation;
  EventLoop* const loop;  // these two outlive this
  FileSystem* const files;
  uint64_t promised_term = 0;
  std::optional<Timeline> timeline = std::nullopt;  // none: empty
  ServerStats stats = {};

  // 0 when empty.
  uint64_t timeline_term() const { return timeline ? timeline->term : 0; }
  // Requires a timeline.
  VariableStore& store() const { return *timeline->variables.store; }
  // Sets the fields of a hello that are the same on each stream of this ps.
  void FillHello(proto::ServerHello* hello) const;
};

}  // namespace shoal
