#pragma once

#include <cstddef>
#include <memory>
#include <nlohmann/json_fwd.hpp>
#include <span>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "common/json/json_errors.h"

namespace shoal {

// The direction that a codec is used in: workers push gradients to a ps and pull values from it.
enum class Direction { kPush, kPull };

// Writes floats in fewer bytes. Loses digits, and keeps no state: equal values give equal bytes on
// every machine. Each codec is one file here and one line in codec_table.cc. One test suite checks
// the contract below for all of them (tests/common/compression). Immutable; thread-safe.
class Codec {
 public:
  virtual ~Codec() = default;

  // The codec as configured in a job, with every option; MakeCodec() reads it. Canonical.
  const std::string& config() const { return config_; }

  // The number of bytes for any `count` values.
  virtual size_t EncodedBytes(size_t count) const = 0;

  // Writes EncodedBytes(values.size()) bytes, at any alignment. Non-finite values stay visible:
  // they decode to non-finite values, and may make others so (the codec's file says which).
  // Encoding decoded values again gives the same bytes.
  virtual void Encode(std::span<const float> values, char* out) const = 0;

  // kInvalidArgument if these bytes are no encoding of out.size() values; the contents of `out` are
  // then undefined. The bytes may come from anyone.
  virtual absl::Status Decode(std::span<const char> bytes, std::span<float> out) const = 0;

  // Whether the encoding error is large, so that the encoding side must add it to the next values
  // that it encodes ("error feedback").
  virtual bool leaves_residual() const { return false; }

 protected:
  explicit Codec(std::string config) : config_(std::move(config)) {}

  // OK if `bytes` is the encoded size of `count` values; else an error.
  absl::Status CheckSize(size_t bytes, size_t count) const;
  // kInvalidArgument, with the codec's name.
  absl::Status Damaged(const std::string& what) const;

 private:
  const std::string config_;
};

// Reads the codec at `path` of a job: its name, or {"name": …} with options. Adds problems to
// `errors`, also if the codec does not support the direction; the result, null or not, is then
// meaningless.
std::unique_ptr<const Codec> ReadCodec(const nlohmann::json& value, const std::string& path,
                                       Direction direction, JsonErrors* errors);

// The same from Codec::config(), which Job::compression holds; null for "". The message of an error
// begins with `path`.
absl::StatusOr<std::shared_ptr<const Codec>> MakeCodec(const std::string& config,
                                                       Direction direction,
                                                       const std::string& path = "$.compression");

}  // namespace shoal
