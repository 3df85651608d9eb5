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

// Converts between chunks as the job has them travel, maybe compressed, and the float32 of the
// store. Loop thread only.
class ChunkCoding {
 public:
  // Nothing is compressed.
  ChunkCoding() = default;
  static absl::StatusOr<ChunkCoding> Of(const Job::Compression& compression);

  // kFailedPrecondition, naming all codecs: a worker with these codecs writes or reads otherwise
  // than this job.
  absl::Status CheckPeer(const std::string& push_codec, const std::string& pull_codec) const;

  // Whether pushes of this chunk are compressed, and answers with its values.
  bool codes_push(const Chunk& chunk) const;
  bool codes_pull(const Chunk& chunk) const;

  // Returns a compressed push with its gradient as float32. kInvalidArgument: no encoding of this
  // chunk.
  absl::StatusOr<Message> DecodePush(const Chunk& chunk, const Message& push);
  // Returns the values compressed. The chunk may change from now on.
  ChunkSnapshot EncodeValues(const Chunk& chunk, const ChunkSnapshot& values) const;

 private:
  std::shared_ptr<const Codec> push_;  // null: float32
  std::shared_ptr<const Codec> pull_;
  // The last gradient; its memory is used again once nobody holds it.
  std::shared_ptr<float[]> floats_;
  int64_t floats_size_ = 0;
};

}  // namespace shoal
