#include "cli/coordinator_calls/cluster_call.h"

#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "common/base/text/printable.h"

namespace shoal {
namespace {

// The max size of one text from a peer.
constexpr size_t kMaxTextBytes = 4096;

void MakePrintable(google::protobuf::Message* message) {
  using Field = google::protobuf::FieldDescriptor;
  const google::protobuf::Reflection* const reflection = message->GetReflection();
  std::vector<const Field*> fields;
  reflection->ListFields(*message, &fields);
  for (const Field* field : fields) {
    const int count = field->is_repeated() ? reflection->FieldSize(*message, field) : 1;
    for (int i = 0; i < count; ++i) {
      if (field->cpp_type() == Field::CPPTYPE_MESSAGE) {
        MakePrintable(field->is_repeated() ? reflection->MutableRepeatedMessage(message, field, i)
                                           : reflection->MutableMessage(message, field));
      } else if (field->type() == Field::TYPE_STRING && field->is_repeated()) {
        reflection->SetRepeatedString(
            message, field, i,
            Printable(reflection->GetRepeatedString(*message, field, i), kMaxTextBytes));
      } else if (field->type() == Field::TYPE_STRING) {
        reflection->SetString(message, field,
                              Printable(reflection->GetString(*message, field), kMaxTextBytes));
      }
    }
  }
}

}  // namespace

bool ParseReply(const Message& answer, google::protobuf::Message* reply) {
  if (!ParseMessage(answer, reply)) return false;
  MakePrintable(reply);
  return true;
}

ClusterCall::ClusterCall(const Options& options, Message request, Done done)
    : done_(std::move(done)), timer_(options.loop) {
  const std::string address = options.address;
  stream_ = options.network->Open(
      address, options.method,
      {.on_message = [this](Message message) { Finish(std::move(message)); },
       .on_closed =
           [this, address](absl::Status status) {
             if (status.ok()) {
               status = absl::UnavailableError(address + ": the stream ended without an answer");
             }
             const std::string text = Printable(std::string(status.message()), kMaxTextBytes);
             Finish(absl::IsUnimplemented(status)
                        ? absl::UnimplementedError(
                              absl::StrCat(address, " is not a coordinator: ", text,
                                           "; give the address of the chief of the cluster spec"))
                        : absl::Status(status.code(), text));
           }});
  stream_->Send(std::move(request));
  timer_.Set(options.timeout, [this, address] {
    Finish(absl::DeadlineExceededError(address + ": the coordinator does not answer"));
  });
}

void ClusterCall::Finish(absl::StatusOr<Message> result) {
  // Posts the call instead of making it from the stream's callback: `done` may destroy this, and
  // the stream with it.
  if (!done_) return;
  timer_.Set(Time(0),
             [done = std::exchange(done_, nullptr), result = std::move(result)] { done(result); });
}

}  // namespace shoal
