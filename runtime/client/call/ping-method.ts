/**
 * The method that a client calls to find out whether a server answers on the data connection of a session.
 * No server has this method. Every server, including those of earlier releases, answers the call with
 * UNIMPLEMENTED from the same event loop and by the same path as other calls. The checks of silent
 * connections and `rdma-rpc ping` use it.
 */
import { noMessage } from '../../boundary/outgoing/plain-types.ts';
import { methodId } from '../../codec/service/method-id.ts';
import { type ClientMethod, clientMethod } from './client-method.ts';

const path = 'rdma_rpc.Ping/Ping';
let method: ClientMethod | undefined;

/** Returns the method, which is made when it is first used, because most processes never use it. */
export function pingMethod(): ClientMethod {
  method ??= clientMethod(
    {
      name: 'Ping',
      fullName: path,
      id: methodId(path),
      input: noMessage,
      requestStream: false,
      output: noMessage,
      responseStream: false,
      options: {},
    },
    -1,
  );
  return method;
}
