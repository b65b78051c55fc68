-- A journal as version 1 wrote it. Never edited: what it holds must be readable for ever.
CREATE TABLE facts (name TEXT PRIMARY KEY, value INTEGER NOT NULL) STRICT;
INSERT INTO facts VALUES('epoch_ms',1794796505885);
CREATE TABLE specs (id INTEGER PRIMARY KEY, body TEXT NOT NULL) STRICT;
INSERT INTO specs VALUES(1,'{"name":"first","command":["/bin/true"],"directory":"/","environment":[],"gpus":1,"gpu_memory":2147483648,"estimate":null,"exclusive":false,"time_limit":null,"after":[],"begin_ms":null,"priority":0,"retries":0,"on_oom":"policy","warning":null,"output":null,"errors":null,"idle_timeout":null}');
INSERT INTO specs VALUES(2,'{"name":"second","command":["/bin/false"],"directory":"/","environment":[],"gpus":1,"gpu_memory":null,"estimate":null,"exclusive":false,"time_limit":null,"after":[],"begin_ms":null,"priority":0,"retries":0,"on_oom":"policy","warning":null,"output":null,"errors":null,"idle_timeout":null}');
INSERT INTO specs VALUES(3,'{"name":"endless","command":["/bin/sleep","60"],"directory":"/","environment":[],"gpus":1,"gpu_memory":null,"estimate":null,"exclusive":false,"time_limit":60000,"after":[],"begin_ms":null,"priority":0,"retries":0,"on_oom":"policy","warning":null,"output":null,"errors":null,"idle_timeout":null}');
CREATE TABLE tasks (
         id INTEGER PRIMARY KEY,
         over INTEGER NOT NULL,
         ended_ms INTEGER,
         body TEXT NOT NULL
     ) STRICT;
INSERT INTO tasks VALUES(1,1,1794796507985,'{"id":1,"spec":1,"owner":0,"array":null,"phase":"completed","held":false,"cancelled":false,"submitted":1794796507847,"started":1794796507940,"first_started":1794796507940,"ended":1794796507985,"attempt":1,"ooms":0,"preemptions":0,"retried":0,"placement":{"slots":[{"gpu":0,"instance":null}],"share":"mps"},"exit":{"code":0},"peak":0,"wanted":null,"reason":null}');
INSERT INTO tasks VALUES(2,1,1794796508025,'{"id":2,"spec":2,"owner":0,"array":null,"phase":"failed","held":false,"cancelled":false,"submitted":1794796507965,"started":1794796507981,"first_started":1794796507981,"ended":1794796508025,"attempt":1,"ooms":0,"preemptions":0,"retried":0,"placement":{"slots":[{"gpu":0,"instance":null}],"share":"mps"},"exit":{"code":1},"peak":0,"wanted":null,"reason":"failed (exit code 1)"}');
INSERT INTO tasks VALUES(3,0,NULL,'{"id":3,"spec":3,"owner":0,"array":null,"phase":"pending","held":true,"cancelled":false,"submitted":1794796508001,"started":null,"first_started":null,"ended":null,"attempt":0,"ooms":0,"preemptions":0,"retried":0,"placement":null,"exit":null,"peak":0,"wanted":null,"reason":null}');
CREATE TABLE story (
         seq INTEGER PRIMARY KEY,
         task INTEGER NOT NULL,
         at_ms INTEGER NOT NULL,
         what TEXT NOT NULL
     ) STRICT;
INSERT INTO story VALUES(1,1,1794796507847,'submitted');
INSERT INTO story VALUES(2,1,1794796507857,'attempt 1 is launched on GPU 0');
INSERT INTO story VALUES(3,2,1794796507965,'submitted');
INSERT INTO story VALUES(4,2,1794796507969,'attempt 1 is launched on GPU 0');
INSERT INTO story VALUES(5,1,1794796507985,'completed');
INSERT INTO story VALUES(6,3,1794796508001,'submitted');
INSERT INTO story VALUES(7,2,1794796508022,'failed (exit code 1)');
INSERT INTO story VALUES(8,2,1794796508025,'failed');
CREATE INDEX live_tasks ON tasks (id) WHERE over = 0;
CREATE INDEX ended_tasks ON tasks (ended_ms) WHERE over = 1;
CREATE INDEX story_of_task ON story (task);
PRAGMA user_version = 1;
