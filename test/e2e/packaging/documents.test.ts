import { hasNoServer, tryDocuments } from '../../support/documents/try-documents.ts';

tryDocuments((name) => !hasNoServer(name));
