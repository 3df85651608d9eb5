#pragma once

#include <cudnn_graph.h>

#include <algorithm>
#include <cstdint>
#include <span>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "worker/compute/cuda/cudnn/cudnn_library.h"
#include "worker/compute/cuda/runtime/node_name.h"

namespace shoal::cuda {

// cuDNN's name for the type of an attribute.
template <typename T>
struct AttributeType;
#define SHOAL_ATTRIBUTE_TYPE(TYPE, NAME)                                     \
  template <>                                                                \
  struct AttributeType<TYPE> {                                               \
    static constexpr cudnnBackendAttributeType_t kValue = CUDNN_TYPE_##NAME; \
  }
SHOAL_ATTRIBUTE_TYPE(bool, BOOLEAN);
SHOAL_ATTRIBUTE_TYPE(char, CHAR);
SHOAL_ATTRIBUTE_TYPE(float, FLOAT);
SHOAL_ATTRIBUTE_TYPE(int32_t, INT32);
SHOAL_ATTRIBUTE_TYPE(int64_t, INT64);
SHOAL_ATTRIBUTE_TYPE(void*, VOID_PTR);
SHOAL_ATTRIBUTE_TYPE(cudnnBackendHeurMode_t, HEUR_MODE);
SHOAL_ATTRIBUTE_TYPE(cudnnBackendKnobType_t, KNOB_TYPE);
SHOAL_ATTRIBUTE_TYPE(cudnnBackendNumericalNote_t, NUMERICAL_NOTE);
SHOAL_ATTRIBUTE_TYPE(cudnnConvolutionMode_t, CONVOLUTION_MODE);
SHOAL_ATTRIBUTE_TYPE(cudnnDataType_t, DATA_TYPE);
SHOAL_ATTRIBUTE_TYPE(cudnnNanPropagation_t, NAN_PROPOGATION);
SHOAL_ATTRIBUTE_TYPE(cudnnPointwiseMode_t, POINTWISE_MODE);
#undef SHOAL_ATTRIBUTE_TYPE

// A descriptor of cuDNN's graph API: attributes, which take effect when it is finalized. Owns it,
// but not the descriptors that it refers to: keep those alive. Not thread-safe. Errors name `node`,
// which must outlive it.
class Descriptor {
 public:
  // Makes an empty descriptor. `library` must outlive it.
  static absl::StatusOr<Descriptor> Create(const CudnnLibrary& library,
                                           cudnnBackendDescriptorType_t type, const NodeName& node);
  Descriptor(Descriptor&& other);
  Descriptor& operator=(Descriptor&& other);
  ~Descriptor();

  cudnnBackendDescriptor_t get() const { return descriptor_; }

  // Sets a list.
  template <typename T>
  absl::Status Set(cudnnBackendAttributeName_t name, std::span<const T> values) {
    return SetElements(name, AttributeType<T>::kValue, values.size(), values.data());
  }
  template <typename T>
  absl::Status Set(cudnnBackendAttributeName_t name, const T& value) {
    return Set(name, std::span<const T>(&value, 1));
  }
  absl::Status Set(cudnnBackendAttributeName_t name, const Descriptor& value) {
    return SetElements(name, CUDNN_TYPE_BACKEND_DESCRIPTOR, 1, &value.descriptor_);
  }
  absl::Status SetDescriptors(cudnnBackendAttributeName_t name,
                              std::span<const cudnnBackendDescriptor_t> values) {
    return SetElements(name, CUDNN_TYPE_BACKEND_DESCRIPTOR, values.size(), values.data());
  }
  // Makes the attributes take effect. Required before use.
  absl::Status Finalize();

  // Returns a list of any length.
  template <typename T>
  absl::StatusOr<std::vector<T>> Get(cudnnBackendAttributeName_t name) const;
  // Returns a list of descriptors of this type, of any length.
  absl::StatusOr<std::vector<Descriptor>> GetDescriptors(cudnnBackendAttributeName_t name,
                                                         cudnnBackendDescriptorType_t type) const;
  // Returns at most `max` descriptors. For some lists cuDNN reports a length of zero unless the
  // caller provides room for elements.
  absl::StatusOr<std::vector<Descriptor>> GetDescriptors(cudnnBackendAttributeName_t name,
                                                         cudnnBackendDescriptorType_t type,
                                                         int64_t max) const;
  // Returns a single value.
  template <typename T>
  absl::StatusOr<T> GetOne(cudnnBackendAttributeName_t name) const;

 private:
  Descriptor(const CudnnLibrary* library, cudnnBackendDescriptor_t descriptor, const NodeName& node)
      : library_(library), descriptor_(descriptor), node_(node) {}

  absl::Status SetElements(cudnnBackendAttributeName_t name, cudnnBackendAttributeType_t type,
                           int64_t count, const void* elements);
  // Reads at most `count` elements; returns their number.
  absl::StatusOr<int64_t> GetElements(cudnnBackendAttributeName_t name,
                                      cudnnBackendAttributeType_t type, int64_t count,
                                      void* elements) const;

  const CudnnLibrary* library_;
  cudnnBackendDescriptor_t descriptor_;
  NodeName node_;
};

template <typename T>
absl::StatusOr<std::vector<T>> Descriptor::Get(cudnnBackendAttributeName_t name) const {
  absl::StatusOr<int64_t> count = GetElements(name, AttributeType<T>::kValue, 0, nullptr);
  if (!count.ok()) return count.status();
  std::vector<T> values(*count);
  count = GetElements(name, AttributeType<T>::kValue, *count, values.data());
  if (!count.ok()) return count.status();
  values.resize(std::min<size_t>(values.size(), *count));
  return values;
}

template <typename T>
absl::StatusOr<T> Descriptor::GetOne(cudnnBackendAttributeName_t name) const {
  T value{};
  const absl::StatusOr<int64_t> count = GetElements(name, AttributeType<T>::kValue, 1, &value);
  if (!count.ok()) return count.status();
  return value;
}

}  // namespace shoal::cuda
