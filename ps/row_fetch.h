#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <vector>

#include "absl/status/status.h"
#include "ps/session.h"
#include "ps/store/variable_store.h"

namespace shoal {

namespace proto {
class Rows;
}  // namespace proto

// Fills a store with the rows of a checkpoint whose directory this machine does not see: asks the
// coordinator for them, a few at a time. Loop thread only.
class RowFetch {
 public:
  // `store` outlives this. A later callback calls `done` once, as its last act; `done` may destroy
  // this. kDataLoss: the coordinator cannot read the rows, or has sent other ones.
  RowFetch(uint64_t term, VariableStore* store, std::function<void(absl::Status)> done);

  // Asks this session from now on, and again for rows that have not come yet.
  void AskAt(const SessionPtr& session);
  void OnRows(const proto::Rows& rows);

 private:
  void AskForMore();
  void Ask(size_t piece);

  const uint64_t term_;
  const std::function<void(absl::Status)> done_;
  std::vector<VariableStore::RowRun> pieces_;  // small enough for a message each
  size_t next_ = 0;                            // first piece that is not asked for
  std::vector<size_t> asked_;
  std::weak_ptr<Session> session_;
};

}  // namespace shoal
