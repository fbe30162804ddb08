/**
 * The packages that `rdma-rpc migrate` knows. The migration rules and the code that chooses the files to read
 * use these names.
 */
import { connectPage, generatorPage, grpcServerPage, nicePage } from './left.ts';

interface FromModule {
  readonly module: string;
}

export const isGrpc = ({ module }: FromModule): boolean => module === '@grpc/grpc-js' || module === 'grpc';
export const isNice = ({ module }: FromModule): boolean => /^nice-grpc(-common)?$/.test(module);
export const isConnect = ({ module }: FromModule): boolean =>
  /^@(connectrpc|bufbuild)\/connect(-node|-web|-fastify|-express|-next)?$/.test(module);
const isProtobufEs = ({ module }: FromModule): boolean => module === '@bufbuild/protobuf';

/** Packages that belong to one of the libraries, with their replacement. */
export const companions: readonly (readonly [name: RegExp, text: string, page: string])[] = [
  [
    /^nice-grpc-(client-middleware|server-middleware|opentelemetry|prometheus|server-(health|reflection|terminator)|error-details)/,
    'is built in here, or an entry point of this package',
    nicePage,
  ],
  [
    /^@grpc\/proto-loader$/,
    'loads .proto files at run time: import the code that rdma-rpc gen wrote instead',
    generatorPage,
  ],
  [
    /^(grpc-health-check|@grpc\/reflection)$/,
    'is rdma-rpc/health or rdma-rpc/reflection here',
    grpcServerPage,
  ],
  [/^@connectrpc\/(validate|otelconnect)$/, 'is rdma-rpc/validate or rdma-rpc/otel here', connectPage],
];

export function isLibrary(from: FromModule): boolean {
  if (isGrpc(from) || isNice(from) || isConnect(from) || isProtobufEs(from)) return true;
  return companions.some(([name]) => name.test(from.module));
}
