#include "tests/fuzz/sequences/attack.h"

#include <sanitizer/allocator_interface.h>

#include <algorithm>
#include <utility>

#include "common/rpc/message_wire.h"
#include "common/rpc/methods.h"
#include "tests/fuzz/sequences/fuzz_check.h"

namespace shoal {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

// More actions find little that fewer do not, and cost time.
constexpr int kMaxActions = 100;
constexpr size_t kMaxRepeatedBytes = size_t{4} << 20;
constexpr Time kMaxTime = std::chrono::minutes(3);

// One peer may make all others together keep this much: they cut texts and bound queues.
constexpr size_t kMaxGrowthBytes = size_t{64} << 20;

constexpr Time kTimes[] = {milliseconds(1), milliseconds(10), milliseconds(60), milliseconds(250),
                           seconds(1),      seconds(3),       seconds(11),      seconds(61)};

}  // namespace

Attack::Attack(Options options)
    : options_(std::move(options)), node_(options_.cluster->hub().CreateNode("attacker")) {
  if (!options_.listens) return;
  const auto bound = node_->Listen(
      options_.address, [this](const std::string& method, std::unique_ptr<Stream> stream) {
        auto end = std::make_shared<End>();
        end->method = method;
        end->speaker = options_.speak(method);
        end->stream = std::move(stream);
        StreamCallbacks callbacks = CallbacksFor(end);
        ends_[accepted_++ % ends_.size()] = std::move(end);
        return callbacks;
      });
  FuzzCheck(bound.ok(), bound.status().ToString());
}

Attack::~Attack() {
  ends_ = {};
  node_.reset();
  options_.cluster->loop().RunUntilIdle();
}

StreamCallbacks Attack::CallbacksFor(const std::shared_ptr<End>& end) {
  return {.on_message =
              [this, weak = std::weak_ptr<End>(end)](Message message) {
                const std::shared_ptr<End> receiver = weak.lock();
                if (receiver == nullptr) return;
                for (const auto& answer : receiver->speaker->Hear(message))
                  Send(receiver.get(), answer->SerializeAsString());
              },
          .on_closed =
              [weak = std::weak_ptr<End>(end)](absl::Status) {
                const std::shared_ptr<End> closed = weak.lock();
                if (closed != nullptr) closed->stream.reset();
              }};
}

void Attack::Open(size_t stream, const std::string& method) {
  auto end = std::make_shared<End>();
  end->method = method;
  end->speaker = options_.speak(method);
  end->stream = node_->Open(options_.address, method, CallbacksFor(end));
  ends_[stream] = std::move(end);
}

void Attack::Run(InputBytes* input) {
  const size_t before = __sanitizer_get_current_allocated_bytes();
  for (int i = 0; i < kMaxActions && !input->empty(); ++i) {
    Act(input);
    options_.cluster->CheckStores();
  }
  node_->Hold(false);
  options_.cluster->loop().RunUntilIdle();
  const size_t after = __sanitizer_get_current_allocated_bytes();
  FuzzCheck(after < before + kMaxGrowthBytes, "the tasks hold ", after - before,
            " bytes more than before the attack");
}

void Attack::Act(InputBytes* input) {
  FakeLoop& loop = options_.cluster->loop();
  const uint8_t op = input->Byte();
  const size_t stream = op >> 4 & 3;
  std::shared_ptr<End> end = ends_[stream];
  const bool open = end != nullptr && end->stream != nullptr;
  switch (op & 15) {
    case 1:
      if (!options_.listens) Open(stream, options_.methods[input->Below(options_.methods.size())]);
      break;
    case 2: {
      const std::string bytes = input->Text();
      if (open) Send(end.get(), bytes);
      break;
    }
    case 3: {
      size_t bytes = 0;
      for (int more = input->Byte(); more > 0 && open && bytes < kMaxRepeatedBytes; --more) {
        bytes += end->last.size();
        Send(end.get(), end->last);
      }
      break;
    }
    case 4: {
      const auto code = static_cast<absl::StatusCode>(input->Below(17));
      if (open) end->stream->Finish(absl::Status(code, "the attacker ends it"));
      break;
    }
    case 5:
      ends_[stream].reset();
      break;
    case 6:
      held_ = !held_;
      node_->Hold(held_);
      break;
    case 7: {
      const Time time = std::min(kTimes[input->Below(std::size(kTimes))], kMaxTime - passed_);
      passed_ += time;
      loop.Advance(time);
      break;
    }
    case 8:
      break;
    default:
      if (!open && !options_.listens) {
        Open(stream, options_.methods.front());
        end = ends_[stream];
        // Its speaker may need the hello.
        loop.RunUntilIdle();
      }
      if (end != nullptr && end->stream != nullptr) Say(end.get(), input);
      break;
  }
  if ((op & 64) == 0) loop.RunUntilIdle();
}

void Attack::Say(End* end, InputBytes* input) {
  const std::unique_ptr<google::protobuf::Message> message = end->speaker->Make(input->Byte());
  if (size_t mutations = input->Below(4); mutations > 0) {
    const KnownValues known = options_.cluster->Known();
    for (; mutations > 0; --mutations) MutateMessage(known, input, message.get());
  }
  Send(end, message->SerializeAsString());
}

// Treats the bytes as a transport does that receives them.
void Attack::Send(End* end, const std::string& bytes) {
  if (end->stream == nullptr) return;
  end->last = bytes;
  const MethodTraits traits = TraitsOf(end->method);
  const size_t max = std::max(traits.max_request_bytes, traits.max_trusted_request_bytes);
  if (!options_.listens && bytes.size() > max)
    return end->stream->Finish(absl::ResourceExhaustedError("too large"));
  // Of exactly this size, so that the address sanitizer sees what reads beyond it.
  const std::shared_ptr<char[]> copy(new char[bytes.size()]);
  std::copy(bytes.begin(), bytes.end(), copy.get());
  const Slice whole{.data = copy.get(), .size = bytes.size(), .owner = copy};
  absl::StatusOr<Message> message = DecodeMessage(std::span(&whole, 1));
  if (!message.ok()) return end->stream->Finish(message.status());
  end->stream->Send(*std::move(message));
}

}  // namespace shoal
