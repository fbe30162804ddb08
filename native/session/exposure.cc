// See exposure.h.
#include "session/exposure.h"

namespace rdma_rpc::session {

const char* to_string(Exposure exposure) {
  switch (exposure) {
    case Exposure::automatic:
      return "auto";
    case Exposure::window:
      return "window";
    case Exposure::staging:
      return "staging";
    case Exposure::shared:
      return "shared";
  }
  return "?";
}

}  // namespace rdma_rpc::session
