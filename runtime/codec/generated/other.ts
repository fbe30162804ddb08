/**
 * The target of all other `rdma-rpc/generated/…` imports, which earlier and later generators write. It throws
 * an error that says what to do, because Node would only say that the package has no such path.
 */
throw new Error(
  'a generated file imports a version of rdma-rpc/generated that this rdma-rpc does not have (it has v1): run `npx rdma-rpc gen` again, or install the rdma-rpc that made the file, which its first line names',
);
