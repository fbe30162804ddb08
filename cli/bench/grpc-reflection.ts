/**
 * Reflection of gRPC servers by grpc.reflection.v1. Servers without it have the older v1alpha, which has the
 * same messages under another name. target.ts uses this file.
 */
import { Method } from '../../runtime/codec/service/method.ts';
import { RpcError } from '../../runtime/core/errors/rpc-error.ts';
import { Status } from '../../runtime/core/errors/status.ts';
import {
  ServerReflectionDefinition,
  type ServerReflectionRequestInit,
} from '../../runtime/services/gen/grpc/reflection/v1/reflection.rdma.ts';
import type { Reflection } from '../server/schema/reflection-client.ts';

const { name, methods } = ServerReflectionDefinition;
const { preferred: _, ...declared } = methods.serverReflectionInfo;
const alphaName = `grpc.reflection.v1alpha.${name}`;
/** The service has no file, because its declaration is not needed. */
export const alphaReflection = {
  name,
  fullName: alphaName,
  methods: {
    serverReflectionInfo: new Method({ ...declared, fullName: `${alphaName}/ServerReflectionInfo` }),
  },
};

type Ask = Reflection['serverReflectionInfo'];

/**
 * Calls `first`, and then `then` if the status of `first` is UNIMPLEMENTED. The requests are a list, so that
 * they can be sent again.
 */
export function eitherReflection(first: Ask, then: Ask): Ask {
  return async function* ask(requests, options) {
    const all = requests as readonly ServerReflectionRequestInit[];
    try {
      yield* first(all, options);
      return;
    } catch (error) {
      if (!(error instanceof RpcError) || error.code !== Status.UNIMPLEMENTED) throw error;
    }
    yield* then(all, options);
  };
}
