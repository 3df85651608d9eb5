#pragma once

#include <gtest/gtest.h>

#include <cstring>
#include <span>
#include <string>
#include <vector>

#include "common/base/version.h"
#include "common/model/model_layout.h"
#include "common/sharding/shard_map.h"
#include "proto/parameter_server.pb.h"
#include "tests/fakes/fake_network.h"

namespace shoal {

// Three variables on two ps, in several chunks; one of them is frozen.
struct SmallModel {
  std::vector<Variable> variables = {{"dense/kernel", {20, 4}},
                                     {"dense/bias", {4}},
                                     {"norm/moving_mean", {8}, UpdateRule::kFrozen}};
  ShardMap shard_map{variables, 2, {.min_shard_bytes = 32, .chunk_bytes = 48}};
  ModelLayout layout{variables};

  const std::vector<Chunk>& chunks(int ps) const { return shard_map.ps(ps).chunks; }
  // Copies the chunk's values from a buffer of the model, as they travel.
  std::string Gather(int ps, int chunk, std::span<const float> buffer) const {
    std::string bytes;
    for (const ChunkPiece& piece : chunks(ps)[chunk].pieces) {
      const float* begin =
          buffer.data() + layout.variables[piece.variable].offset + piece.variable_offset;
      bytes.append(reinterpret_cast<const char*>(begin), piece.size * sizeof(float));
    }
    return bytes;
  }
  // Returns a chunk in which all values are `value`.
  std::string Filled(int ps, int chunk, float value) const {
    const std::vector<float> values(chunks(ps)[chunk].size, value);
    return {reinterpret_cast<const char*>(values.data()), values.size() * sizeof(float)};
  }
};

// The ps' side of an Exchange stream.
struct ExchangePeer {
  static void SendHello(FarEnd& stream, uint64_t timeline) {
    proto::ExchangeReply reply;
    reply.mutable_hello()->set_version(kVersion);
    reply.mutable_hello()->set_timeline(timeline);
    stream.Send(reply);
  }
  static void SendValues(FarEnd& stream, uint64_t timeline, uint32_t chunk, uint64_t version,
                         uint64_t cut_step, const std::string& payload) {
    proto::ExchangeReply reply;
    reply.mutable_values()->set_timeline(timeline);
    reply.mutable_values()->set_chunk(chunk);
    reply.mutable_values()->set_version(version);
    reply.mutable_values()->set_cut_step(cut_step);
    stream.Send(reply, payload);
  }
  static void SendApplied(FarEnd& stream, uint64_t timeline, uint64_t step, uint32_t chunk,
                          uint64_t version, const std::string& payload) {
    proto::ExchangeReply reply;
    reply.mutable_applied()->set_timeline(timeline);
    reply.mutable_applied()->set_step(step);
    reply.mutable_applied()->set_chunk(chunk);
    reply.mutable_applied()->set_version(version);
    stream.Send(reply, payload);
  }
  // A rejected request.
  struct Request {
    uint64_t timeline = 0;
    uint64_t cut_step = 0;
  };
  static void Reject(FarEnd& stream, const Request& request, uint64_t timeline,
                     const std::string& reason) {
    proto::ExchangeReply reply;
    reply.mutable_rejection()->set_requested_timeline(request.timeline);
    reply.mutable_rejection()->set_requested_cut_step(request.cut_step);
    reply.mutable_rejection()->set_timeline(timeline);
    reply.mutable_rejection()->set_reason(reason);
    stream.Send(reply);
  }
  // Reports that the ps no longer keeps the version.
  static void RejectVersion(FarEnd& stream, uint64_t timeline, uint64_t version) {
    proto::ExchangeReply reply;
    reply.mutable_rejection()->set_requested_timeline(timeline);
    reply.mutable_rejection()->set_requested_version(version);
    reply.mutable_rejection()->set_round_complete(true);
    reply.mutable_rejection()->set_timeline(timeline);
    reply.mutable_rejection()->set_reason("its round is complete");
    stream.Send(reply);
  }
};

}  // namespace shoal
