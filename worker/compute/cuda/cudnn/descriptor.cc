#include "worker/compute/cuda/cudnn/descriptor.h"

#include "common/base/status_macros.h"

namespace shoal::cuda {

absl::StatusOr<Descriptor> Descriptor::Create(const CudnnLibrary& library,
                                              cudnnBackendDescriptorType_t type,
                                              const NodeName& node) {
  cudnnBackendDescriptor_t descriptor = nullptr;
  SHOAL_RETURN_IF_ERROR(
      SHOAL_CUDNN(library, cudnnBackendCreateDescriptor(type, &descriptor), node));
  return Descriptor(&library, descriptor, node);
}

Descriptor::Descriptor(Descriptor&& other)
    : library_(other.library_),
      descriptor_(std::exchange(other.descriptor_, nullptr)),
      node_(other.node_) {}

Descriptor& Descriptor::operator=(Descriptor&& other) {
  std::swap(library_, other.library_);
  std::swap(descriptor_, other.descriptor_);
  std::swap(node_, other.node_);
  return *this;
}

Descriptor::~Descriptor() {
  if (descriptor_ != nullptr) library_->cudnnBackendDestroyDescriptor(descriptor_);
}

absl::Status Descriptor::Finalize() {
  return SHOAL_CUDNN(*library_, cudnnBackendFinalize(descriptor_), node_);
}

absl::Status Descriptor::SetElements(cudnnBackendAttributeName_t name,
                                     cudnnBackendAttributeType_t type, int64_t count,
                                     const void* elements) {
  return SHOAL_CUDNN(*library_, cudnnBackendSetAttribute(descriptor_, name, type, count, elements),
                     node_);
}

absl::StatusOr<int64_t> Descriptor::GetElements(cudnnBackendAttributeName_t name,
                                                cudnnBackendAttributeType_t type, int64_t count,
                                                void* elements) const {
  int64_t there = 0;
  SHOAL_RETURN_IF_ERROR(SHOAL_CUDNN(
      *library_, cudnnBackendGetAttribute(descriptor_, name, type, count, &there, elements),
      node_));
  return there;
}

absl::StatusOr<std::vector<Descriptor>> Descriptor::GetDescriptors(
    cudnnBackendAttributeName_t name, cudnnBackendDescriptorType_t type) const {
  SHOAL_ASSIGN_OR_RETURN(const int64_t count,
                         GetElements(name, CUDNN_TYPE_BACKEND_DESCRIPTOR, 0, nullptr));
  return GetDescriptors(name, type, count);
}

absl::StatusOr<std::vector<Descriptor>> Descriptor::GetDescriptors(
    cudnnBackendAttributeName_t name, cudnnBackendDescriptorType_t type, int64_t max) const {
  // cuDNN fills existing descriptors.
  std::vector<Descriptor> descriptors;
  std::vector<cudnnBackendDescriptor_t> handles;
  for (int64_t i = 0; i < max; ++i) {
    SHOAL_ASSIGN_OR_RETURN(Descriptor descriptor, Create(*library_, type, node_));
    handles.push_back(descriptor.get());
    descriptors.push_back(std::move(descriptor));
  }
  if (max == 0) return descriptors;
  SHOAL_ASSIGN_OR_RETURN(const int64_t count,
                         GetElements(name, CUDNN_TYPE_BACKEND_DESCRIPTOR, max, handles.data()));
  descriptors.erase(descriptors.begin() + std::min<int64_t>(count, descriptors.size()),
                    descriptors.end());
  return descriptors;
}

}  // namespace shoal::cuda
