#pragma once

#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "common/compression/codec.h"
#include "common/job/job.h"
#include "common/rpc/message.h"
#include "common/sharding/shard_map.h"
#include "ps/store/variable_store.h"

namespace shoal {

// Converts chunks between the job's encoding on the network, maybe compressed, and the float32 of
// the store. Loop thread only.
class ChunkCoding {
 public:
  // Compresses nothing.
  ChunkCoding() = default;
  static absl::StatusOr<ChunkCoding> Of(const Job::Compression& compression);

  // kFailedPrecondition: the worker's codecs differ from this job's. The message names all codecs.
  absl::Status CheckPeer(const std::string& push_codec, const std::string& pull_codec) const;

  // Whether pushes of this chunk are compressed.
  bool compresses_push(const Chunk& chunk) const;
  // Whether answers with the values of this chunk are compressed.
  bool compresses_pull(const Chunk& chunk) const;

  // Returns a compressed push with its gradient as float32. kInvalidArgument: no encoding of this
  // chunk.
  absl::StatusOr<Message> DecodePush(const Chunk& chunk, const Message& push);
  // Returns the values compressed. The chunk may change from now on.
  ChunkSnapshot EncodeValues(const Chunk& chunk, const ChunkSnapshot& values) const;

 private:
  std::shared_ptr<const Codec> push_;  // null: float32
  std::shared_ptr<const Codec> pull_;
  // The last gradient. Its memory is reused once no other holder is left.
  std::shared_ptr<float[]> floats_;
  int64_t floats_size_ = 0;
};

}  // namespace shoal
