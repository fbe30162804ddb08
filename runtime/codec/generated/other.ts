/**
 * What every other `rdma-rpc/generated/…` leads to, those of earlier and of later generators: an import that
 * says what to do. Node would only say that the package has no such path.
 */
throw new Error(
  'a generated file imports a version of rdma-rpc/generated that this rdma-rpc does not have (it has v1): run `npx rdma-rpc gen` again, or install the rdma-rpc that made the file, which its first line names',
);
