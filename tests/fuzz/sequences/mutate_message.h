#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "tests/fuzz/sequences/input_bytes.h"

namespace google::protobuf {
class Message;
}

namespace shoal {

// Values that a peer can know. Random bytes would hardly ever hit them.
struct KnownValues {
  std::vector<uint64_t> numbers;   // timelines, terms, fingerprints, steps; not empty
  std::vector<std::string> texts;  // versions, addresses, paths; not empty
};

// Changes one field of the message, or of a message in it. `input` chooses the field and the value:
//
//   mutation = field (how value* | mutation)
//
// `field` counts modulo the fields of the message. A repeated field can grow to 20,000 elements.
void MutateMessage(const KnownValues& known, InputBytes* input, google::protobuf::Message* message);

}  // namespace shoal
