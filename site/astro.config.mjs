/**
 * The documentation as a site: Starlight on the pages that scripts/docs.mjs has prepared in src/content/docs.
 * Built by `npm run docs` of the project; DOCS_BASE is the path that the site is served under.
 */
import { readFileSync } from 'node:fs';
import starlight from '@astrojs/starlight';
import { defineConfig } from 'astro/config';

const sidebar = JSON.parse(readFileSync(new URL('./src/sidebar.json', import.meta.url), 'utf8'));

export default defineConfig({
  base: process.env.DOCS_BASE ?? '/',
  outDir: '../build/site',
  trailingSlash: 'always',
  devToolbar: { enabled: false },
  integrations: [
    starlight({
      title: 'rdma-rpc',
      description: 'Typed RPC for Node.js over RDMA',
      sidebar,
      customCss: ['./src/styles/site.css'],
      // The pages of docs/ are the source; nobody edits the prepared ones.
      credits: false,
      expressiveCode: { defaultProps: { wrap: false } },
    }),
  ],
});
