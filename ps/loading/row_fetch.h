#pragma once

#include <cstdint>
#include <functional>
#include <memory>

#include "absl/status/status.h"
#include "common/rpc/windowed_fetch.h"
#include "ps/store/variable_store.h"
#include "ps/streams/session.h"

namespace shoal {

namespace proto {
class Rows;
}  // namespace proto

// Fills a store with the rows of a checkpoint whose directory this machine does not see. Requests
// the rows from the coordinator, a few at a time. Loop thread only.
class RowFetch {
 public:
  // `store` outlives this. RequestFrom or OnRows calls `done` when the store is full, or for an
  // error, as its last act; `done` may destroy this. kDataLoss: the coordinator cannot read the
  // rows, or it sent a wrong number of bytes.
  RowFetch(uint64_t term, VariableStore* store, std::function<void(absl::Status)> done);

  // Requests from this session from now on. Requests again the rows that have not arrived.
  void RequestFrom(const SessionPtr& session);
  void OnRows(const proto::Rows& rows);

 private:
  // Calls `done` if all rows are in the store.
  void EndIfDone();
  void Request(const VariableStore::RowRun& piece);

  const uint64_t term_;
  const std::function<void(absl::Status)> done_;
  WindowedFetch<VariableStore::RowRun> fetch_;  // of pieces that fit into a message each
  std::weak_ptr<Session> session_;
};

}  // namespace shoal
