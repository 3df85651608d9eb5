#include "tests/fuzz/sequences/mutate_message.h"

#include <google/protobuf/descriptor.h>
#include <google/protobuf/message.h>

#include <cstring>
#include <limits>

namespace shoal {
namespace {

using google::protobuf::FieldDescriptor;
using google::protobuf::Reflection;

constexpr int kMaxElements = 20'000;
constexpr size_t kLongTextBytes = 60'000;
// What one mutation may add to a message.
constexpr int64_t kMaxBytes = 512 << 10;

void Mutate(const KnownValues& known, InputBytes* input, int64_t* room,
            google::protobuf::Message* message);

uint64_t DrawNumber(const KnownValues& known, InputBytes* input, uint64_t now) {
  static constexpr uint64_t kEdges[] = {0,
                                        1,
                                        (uint64_t{1} << 31) - 1,
                                        uint64_t{1} << 31,
                                        (uint64_t{1} << 32) - 1,
                                        uint64_t{1} << 32,
                                        uint64_t{1} << 63,
                                        std::numeric_limits<uint64_t>::max() - 1,
                                        std::numeric_limits<uint64_t>::max()};
  switch (input->Below(6)) {
    case 0:
      return known.numbers[input->Below(known.numbers.size())];
    case 1:
      return kEdges[input->Below(std::size(kEdges))];
    case 2:
      return now + 1;
    case 3:
      return now - 1;
    case 4:
      return input->Byte();
    default:
      return input->Number();
  }
}

double DrawDouble(InputBytes* input) {
  static constexpr double kEdges[] = {0,
                                      -1,
                                      std::numeric_limits<double>::max(),
                                      std::numeric_limits<double>::denorm_min(),
                                      std::numeric_limits<double>::infinity(),
                                      -std::numeric_limits<double>::infinity(),
                                      std::numeric_limits<double>::quiet_NaN()};
  const size_t choice = input->Below(std::size(kEdges) + 1);
  if (choice < std::size(kEdges)) return kEdges[choice];
  const uint64_t bits = input->Number();
  double value = 0;
  std::memcpy(&value, &bits, sizeof(value));
  return value;
}

std::string DrawText(const KnownValues& known, InputBytes* input, const std::string& now) {
  switch (input->Below(6)) {
    case 0:
      return known.texts[input->Below(known.texts.size())];
    case 1:
      return "";
    case 2:
      return now + input->Text();
    case 3:
      return now.substr(0, now.size() / 2);
    case 4:
      return std::string(kLongTextBytes, static_cast<char>(input->Byte()));
    default:
      return input->Text();
  }
}

// The field that a mutation changes, and where its values come from.
struct Place {
  google::protobuf::Message* message;
  const FieldDescriptor* field;
  const KnownValues& known;
  InputBytes* input;
  int64_t* room;  // bytes

  const Reflection& reflection() const { return *message->GetReflection(); }

  void Set() const {
    const Reflection& r = reflection();
    switch (field->cpp_type()) {
      case FieldDescriptor::CPPTYPE_INT32:
        return r.SetInt32(message, field,
                          static_cast<int32_t>(Number(r.GetInt32(*message, field))));
      case FieldDescriptor::CPPTYPE_INT64:
        return r.SetInt64(message, field,
                          static_cast<int64_t>(Number(r.GetInt64(*message, field))));
      case FieldDescriptor::CPPTYPE_UINT32:
        return r.SetUInt32(message, field,
                           static_cast<uint32_t>(Number(r.GetUInt32(*message, field))));
      case FieldDescriptor::CPPTYPE_UINT64:
        return r.SetUInt64(message, field, Number(r.GetUInt64(*message, field)));
      case FieldDescriptor::CPPTYPE_DOUBLE:
        return r.SetDouble(message, field, DrawDouble(input));
      case FieldDescriptor::CPPTYPE_FLOAT:
        return r.SetFloat(message, field, static_cast<float>(DrawDouble(input)));
      case FieldDescriptor::CPPTYPE_BOOL:
        return r.SetBool(message, field, !r.GetBool(*message, field));
      case FieldDescriptor::CPPTYPE_ENUM:
        return r.SetEnumValue(message, field, input->Byte());
      case FieldDescriptor::CPPTYPE_STRING:
        return r.SetString(message, field, Text(r.GetString(*message, field)));
      case FieldDescriptor::CPPTYPE_MESSAGE:
        return Mutate(known, input, room, r.MutableMessage(message, field));
    }
  }

  void Add() const {
    const Reflection& r = reflection();
    *room -= 16;
    switch (field->cpp_type()) {
      case FieldDescriptor::CPPTYPE_UINT32:
        return r.AddUInt32(message, field, static_cast<uint32_t>(Number(0)));
      case FieldDescriptor::CPPTYPE_UINT64:
        return r.AddUInt64(message, field, Number(0));
      case FieldDescriptor::CPPTYPE_DOUBLE:
        return r.AddDouble(message, field, DrawDouble(input));
      case FieldDescriptor::CPPTYPE_STRING:
        return r.AddString(message, field, Text(""));
      case FieldDescriptor::CPPTYPE_MESSAGE:
        return Mutate(known, input, room, r.AddMessage(message, field));
      default:  // the protocol repeats nothing else
        return;
    }
  }

  // Changes an element, or adds many that are equal.
  void MutateRepeated() const {
    const Reflection& r = reflection();
    const int size = r.FieldSize(*message, field);
    switch (input->Below(4)) {
      case 0:
        return Add();
      case 1:
        return r.ClearField(message, field);
      case 2:
        if (size > 0) r.RemoveLast(message, field);
        if (size > 1) r.SwapElements(message, field, 0, size - 2);
        return;
      default:
        break;
    }
    if (size > 0 && field->cpp_type() == FieldDescriptor::CPPTYPE_MESSAGE)
      Mutate(known, input, room, r.MutableRepeatedMessage(message, field, size - 1));
    // Each further element reads its values from what is left of the input.
    const int more = kMaxElements >> input->Below(16);
    for (int i = 0; i<more&& * room> 0; ++i) Add();
  }

 private:
  uint64_t Number(uint64_t now) const { return DrawNumber(known, input, now); }
  std::string Text(const std::string& now) const {
    std::string text = DrawText(known, input, now);
    *room -= static_cast<int64_t>(text.size());
    return text;
  }
};

void Mutate(const KnownValues& known, InputBytes* input, int64_t* room,
            google::protobuf::Message* message) {
  const int fields = message->GetDescriptor()->field_count();
  if (fields == 0 || *room <= 0) return;
  const Place place = {message,
                       message->GetDescriptor()->field(static_cast<int>(input->Below(fields))),
                       known, input, room};
  if (place.field->is_repeated()) return place.MutateRepeated();
  place.Set();
}

}  // namespace

void MutateMessage(const KnownValues& known, InputBytes* input,
                   google::protobuf::Message* message) {
  int64_t room = kMaxBytes;
  Mutate(known, input, &room, message);
}

}  // namespace shoal
