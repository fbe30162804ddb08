/**
 * A finding that `rdma-rpc migrate` leaves for a person: the line, what to do, and the page that says how.
 */

export interface Left {
  /** Line number, counted from 1. */
  readonly line: number;
  readonly text: string;
  /** Path of the documentation page, with its section. */
  readonly page: string;
}

const page = (path: string): string => `docs/${path}`;

export const interceptorsPage = page('guides/interceptors.md');
export const securityPage = page('guides/security-and-tls.md');
export const streamsPage = page('guides/streams.md');
export const generatorPage = page('reference/generator.md');
export const metadataPage = page('guides/metadata.md');
export const browsersPage = page('concepts/not-included.md#browsers');
export const testingPage = page('guides/testing.md');
export const grpcServerPage = page('migrate/from-grpc-js.md#server');
export const grpcClientPage = page('migrate/from-grpc-js.md#client');
export const nicePage = page('migrate/from-nice-grpc.md');
export const connectPage = page('migrate/from-connect-es.md');
