#pragma once

#include <cstdint>
#include <map>
#include <string>

#include "common/metrics/histogram.h"
#include "common/metrics/metric_samples.h"
#include "common/rpc/event_loop.h"
#include "ps/store/variable_store.h"

namespace shoal {

// Stats of a ps since its start, over all timelines. Loop thread only.
class ServerStats {
 public:
  // Payload to and from one worker. The address of a Traffic stays valid as long as the stats
  // live.
  struct Traffic {
    uint64_t received_bytes = 0;
    uint64_t sent_bytes = 0;
  };
  // Returns the stats of the worker that says it has this index, at `peer`. Their number is
  // bounded: beyond it workers share stats.
  Traffic* TrafficOf(uint32_t worker, const std::string& peer);

  void CountPush(const PushResult& result, Time duration);
  void CountRejection() { ++rejected_; }
  void CountLoad() { ++loads_; }

  void Collect(MetricSamples* out) const;

 private:
  struct Peer {
    std::string worker;
    std::string transport;
    auto operator<=>(const Peer&) const = default;
  };
  std::map<Peer, Traffic> traffic_;
  uint64_t updates_ = 0;
  uint64_t repeated_ = 0;
  uint64_t skipped_ = 0;
  uint64_t rejected_ = 0;
  uint64_t loads_ = 0;
  Histogram staleness_{"shoal_ps_staleness_updates"};
  Histogram apply_seconds_{"shoal_ps_apply_seconds"};
};

}  // namespace shoal
