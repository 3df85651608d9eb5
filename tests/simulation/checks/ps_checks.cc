#include "tests/simulation/checks/ps_checks.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/term.h"
#include "proto/parameter_server.pb.h"
#include "tests/ps/store/applied_steps.h"

namespace shoal {

void PsChecks::AfterCallback(const SimulatedProcess& process) {
  Life& life = lives_[&process];
  const ParameterServer& server = *life.server;
  const uint64_t pushed = std::exchange(life.pushed, 0);
  if (server.promised_term() < life.promised_term) {
    world_.Fail(absl::StrCat(process.name(), " has promised term ", TermText(life.promised_term),
                             " and follows ", TermText(server.promised_term())));
  }
  life.promised_term = server.promised_term();
  if (server.timeline() != life.timeline) {
    CheckLoaded(process, life);
  } else if (server.variables() != nullptr) {
    CheckUpdated(process, life, pushed);
  }
}

void PsChecks::CheckLoaded(const SimulatedProcess& process, Life& life) {
  life.timeline = life.server->timeline();
  life.chunks.clear();
  if (life.timeline != 0) job_.AddTimeline(life.timeline);
  if (life.timeline != 0 && !opened_[life.index].insert(life.timeline).second) {
    world_.Fail(
        absl::StrCat(process.name(), " has loaded timeline ", TermText(life.timeline), " twice"));
  }
  const VariableStore* const store = life.server->variables();
  if (store == nullptr) return;
  life.chunks.resize(store->chunk_count());
  for (int k = 0; k < store->chunk_count(); ++k) {
    const StoredChunk& stored = store->chunk(k);
    life.chunks[k] = {stored.version(), stored.applied().base(), CountSteps(stored.applied())};
    chunks_.Check(process, *store, k);
  }
}

void PsChecks::CheckUpdated(const SimulatedProcess& process, Life& life, uint64_t pushed) {
  const VariableStore& store = *life.server->variables();
  for (int k = 0; k < store.chunk_count(); ++k) {
    SeenChunk& chunk = life.chunks[k];
    const uint64_t version = store.chunk(k).version();
    const AppliedSet& applied = store.chunk(k).applied();
    if (chunk.version == version && chunk.count == CountSteps(applied)) continue;
    if (applied.base() < chunk.base || CountSteps(applied) < chunk.count) {
      world_.Fail(absl::StrCat(process.name(), " chunk ", k, " has forgotten steps in timeline ",
                               TermText(life.timeline)));
    }
    chunk = {version, applied.base(), CountSteps(applied)};
    chunks_.Check(process, store, k);
    if (pushed != life.timeline) {
      world_.Fail(absl::StrCat(process.name(), " has applied a push of timeline ", TermText(pushed),
                               " in ", TermText(life.timeline)));
    }
  }
}

void PsChecks::OnApplied(const SimulatedProcess& process, const proto::Applied& applied) {
  const ParameterServer& server = *lives_[&process].server;
  const VariableStore* const store = server.variables();
  if (server.timeline() != applied.timeline() || store == nullptr ||
      !store->chunk(static_cast<int>(applied.chunk())).applied().Contains(applied.step())) {
    world_.Fail(absl::StrCat(process.name(), " acknowledges what it has not applied"));
  }
}

// In an orderly seed, the newest checkpoint has every step that this ps has applied.
void PsChecks::OnLeft(const SimulatedProcess& process) {
  const Life& life = lives_[&process];
  const VariableStore* const store = life.server->variables();
  if (!job_.workload().orderly || !life.may_go || store == nullptr) return;
  uint64_t end = 0;
  for (int k = 0; k < store->chunk_count(); ++k) {
    const StoredChunk& chunk = store->chunk(k);
    if (chunk.layout().pushed())
      end = std::max(end, job_.rounds().has_value() ? chunk.version() : chunk.applied().end());
  }
  const std::vector<StoredCheckpoint> stored = checkpoints_.Stored();
  const uint64_t kept = stored.empty() ? 0 : stored[0].manifest.cut_step;
  if (end <= kept) return;
  world_.Fail(absl::StrCat(process.name(), " may leave and has applied step ", end - 1,
                           ", but the newest checkpoint has only those below ", kept));
}

}  // namespace shoal
