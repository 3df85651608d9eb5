#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "worker/input/pictures/picture_loader.h"

namespace shoal {

namespace example {
class Example;
}

// A tf.train.Example, parsed. Not thread-safe; used again for the next one.
class ExampleRecord {
 public:
  ExampleRecord();
  ~ExampleRecord();

  // kDataLoss where the bytes are no such message.
  absl::Status Parse(std::span<const uint8_t> data);

  // What it has for each key: "3 float values", "a JPEG".
  std::vector<std::pair<std::string, std::string>> Describe() const;

  // Writes what it has for `key`: as many int64 or float values as `out` takes, or as many bytes;
  // or a JPEG or PNG by `pictures`, if that is given. kDataLoss says what there is instead.
  absl::Status Values(const std::string& key, const PictureLoader* pictures,
                      std::span<float> out) const;

 private:
  std::unique_ptr<example::Example> example_;
};

}  // namespace shoal
