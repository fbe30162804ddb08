// Objects that posted requests keep alive: regions, address handles and windows. Each counts its users. The
// count is not atomic, because all users are on the JS thread and every posted request changes it twice.
#pragma once

#include <cstdint>
#include <utility>

namespace rdma_rpc::checked {

class Counted {
 public:
  Counted() = default;
  virtual ~Counted() = default;
  Counted(const Counted&) = delete;
  Counted& operator=(const Counted&) = delete;

 private:
  template <class Object>
  friend class Ref;
  mutable std::uint32_t users_ = 0;
};

/// Uses a counted object. The last user deletes it.
template <class Object>
class Ref {
 public:
  Ref() = default;
  explicit Ref(Object* object) : object_(object) {
    if (object_ != nullptr) ++object_->Counted::users_;
  }
  Ref(const Ref& other) : Ref(other.object_) {}
  Ref(Ref&& other) noexcept : object_(std::exchange(other.object_, nullptr)) {}
  Ref& operator=(Ref other) noexcept {
    std::swap(object_, other.object_);
    return *this;
  }
  ~Ref() { reset(); }

  void reset() {
    Object* object = std::exchange(object_, nullptr);
    if (object != nullptr && --object->Counted::users_ == 0) delete object;
  }
  Object* get() const { return object_; }
  Object* operator->() const { return object_; }
  Object& operator*() const { return *object_; }
  bool operator==(std::nullptr_t) const { return object_ == nullptr; }

 private:
  Object* object_ = nullptr;
};

template <class Object, class... Arguments>
Ref<Object> make_ref(Arguments&&... arguments) {
  return Ref<Object>(new Object(std::forward<Arguments>(arguments)...));
}

/// An object that a request keeps alive until it has completed.
using Kept = Ref<const Counted>;

}  // namespace rdma_rpc::checked
