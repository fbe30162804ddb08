// Returns the columns of checked/records.h as JS objects, so that a test can compare them with
// runtime/native/verbs-device.ts. This code runs on the JS thread.
#pragma once

#include <napi.h>

namespace rdma_rpc::binding {

/// verbsRecords(): returns an object for each kind of row.
Napi::Value verbs_records(const Napi::CallbackInfo& info);

}  // namespace rdma_rpc::binding
