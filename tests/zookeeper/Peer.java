// SPDX-License-Identifier: MIT
// The locks of Curator, for interop.bats: the same as kazoo_peer.py, for many calls in one process.
//
//     Peer HOSTS PIPE      reads calls from the pipe: REPLY VERB KIND PATH [FILE [LINE]], and for each writes the exit
//                          status of kazoo_peer.py to the file REPLY, or 2 if it fails
//
// KIND is mutex, read, write, or semaphoreN, which has N leases.

import java.io.RandomAccessFile;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.StandardOpenOption;
import java.util.concurrent.TimeUnit;
import org.apache.curator.framework.CuratorFramework;
import org.apache.curator.framework.CuratorFrameworkFactory;
import org.apache.curator.framework.recipes.locks.InterProcessLock;
import org.apache.curator.framework.recipes.locks.InterProcessMutex;
import org.apache.curator.framework.recipes.locks.InterProcessReadWriteLock;
import org.apache.curator.framework.recipes.locks.InterProcessSemaphoreV2;
import org.apache.curator.framework.recipes.locks.Lease;
import org.apache.curator.retry.RetryOneTime;

public class Peer {
    /** A semaphore as a lock. */
    static class OneOf implements InterProcessLock {
        private final InterProcessSemaphoreV2 semaphore;
        private Lease lease;

        OneOf(CuratorFramework client, String path, int leases) {
            semaphore = new InterProcessSemaphoreV2(client, path, leases);
        }

        public void acquire() throws Exception {
            lease = semaphore.acquire();
        }

        public boolean acquire(long time, TimeUnit unit) throws Exception {
            lease = semaphore.acquire(time, unit);
            return lease != null;
        }

        public void release() {
            semaphore.returnLease(lease);
        }

        public boolean isAcquiredInThisProcess() {
            return lease != null;
        }
    }

    static InterProcessLock lock(CuratorFramework client, String kind, String path) {
        if (kind.equals("mutex"))
            return new InterProcessMutex(client, path);
        if (kind.startsWith("semaphore"))
            return new OneOf(client, path, Integer.parseInt(kind.substring(9)));
        InterProcessReadWriteLock both = new InterProcessReadWriteLock(client, path);
        return kind.equals("read") ? both.readLock() : both.writeLock();
    }

    static boolean call(String hosts, String[] words) throws Exception {
        try (CuratorFramework client = CuratorFrameworkFactory.newClient(hosts, 8000, 5000, new RetryOneTime(100))) {
            client.start();
            client.blockUntilConnected();
            InterProcessLock lock = lock(client, words[2], words[3]);
            if (words[1].equals("try")) {
                if (!lock.acquire(300, TimeUnit.MILLISECONDS))
                    return false;
            } else {
                lock.acquire();
                Path file = Path.of(words[4]);
                String line = words.length > 5 ? words[5] + "\n" : "\n";
                Files.writeString(file, line, StandardOpenOption.CREATE, StandardOpenOption.APPEND);
                while (words[1].equals("hold") && Files.exists(file))
                    Thread.sleep(20);
            }
            lock.release();
            return true;
        }
    }

    public static void main(String[] arguments) throws Exception {
        RandomAccessFile calls = new RandomAccessFile(arguments[1], "rw"); // as a writer, too, it sees no end
        for (;;) {
            String[] words = calls.readLine().split(" ");
            new Thread(() -> {
                String status = "2\n";
                try {
                    status = call(arguments[0], words) ? "0\n" : "1\n";
                } catch (Exception failure) {
                    failure.printStackTrace();
                }
                try {
                    Files.writeString(Path.of(words[0]), status);
                } catch (Exception failure) {
                    failure.printStackTrace();
                }
            }).start();
        }
    }
}
