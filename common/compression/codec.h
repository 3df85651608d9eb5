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

// Which way a codec is asked for: gradients are pushed to a ps, values are pulled from it.
enum class Direction { kPush, kPull };

// How floats are written in fewer bytes. Loses digits, and keeps no state: equal values give equal
// bytes, on every machine. Each codec is one file here and one line in codec_table.cc, and what is
// promised below is one suite of tests for all of them (tests/common/compression). Immutable;
// thread-safe.
class Codec {
 public:
  virtual ~Codec() = default;

  // As it stands in a job, with every option: what MakeCodec() reads back. Canonical.
  const std::string& config() const { return config_; }

  // The number of bytes that `count` values take, whatever they are.
  virtual size_t EncodedBytes(size_t count) const = 0;

  // Writes EncodedBytes(values.size()) bytes, at any alignment. Values that are not finite are not
  // hidden: they come back as such, and may make others so (the codec's file says which). To encode
  // again what was decoded gives the same bytes.
  virtual void Encode(std::span<const float> values, char* out) const = 0;

  // kInvalidArgument: these bytes are no encoding of out.size() values, whoever sent them; what
  // `out` holds then is of no use.
  virtual absl::Status Decode(std::span<const char> bytes, std::span<float> out) const = 0;

  // What is left of a value is not small: whoever encodes adds it to what he encodes next ("error
  // feedback").
  virtual bool leaves_residual() const { return false; }

 protected:
  explicit Codec(std::string config) : config_(std::move(config)) {}

  // OK where the bytes are as many as `count` values take; else the message.
  absl::Status CheckSize(size_t bytes, size_t count) const;
  // kInvalidArgument, naming the codec.
  absl::Status Damaged(const std::string& what) const;

 private:
  const std::string config_;
};

// Reads a codec that stands at `path` of a job: its name, or {"name": …} with options. What is
// wrong, a codec that is no good for that direction too, is added to `errors`, and what is returned
// then, null or not, is of no use.
std::unique_ptr<const Codec> ReadCodec(const nlohmann::json& value, const std::string& path,
                                       Direction direction, JsonErrors* errors);

// The same from Codec::config(), such as Job::compression holds; null for "". The message of an
// error begins with `path`.
absl::StatusOr<std::shared_ptr<const Codec>> MakeCodec(const std::string& config,
                                                       Direction direction,
                                                       const std::string& path = "$.compression");

}  // namespace shoal
